"""Values in MySQL's own forms, whole columns at once."""
