"""What each ref and hold keeps."""
