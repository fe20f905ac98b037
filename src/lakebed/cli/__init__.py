"""The program `lakebed`: a lake from the command line. One file for each group of commands; `main` starts them."""
