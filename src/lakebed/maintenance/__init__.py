"""What keeps a table from growing for ever: expiry of snapshots and of the changelogs that outlive them.

Everything here deletes, so everything here plans first and deletes afterwards: if anything that the decision rests on
can not be read, nothing is deleted.
"""
