"""Why a row is as it is, what a read skips, how a table is: answers for people, from what is stored already."""
