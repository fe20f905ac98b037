"""Files in, files out, one commit: compactions, and all that puts rows in the place of others."""
