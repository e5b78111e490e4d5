"""Files that are made once and kept: decoded ranges, lists of ranges, what runs removed."""
