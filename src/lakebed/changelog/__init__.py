"""What a change of a key looks like as events: pure functions over arrays, like the merge engines beside it."""
