"""What is stored: listed, or supplied by somebody who has listed it."""
