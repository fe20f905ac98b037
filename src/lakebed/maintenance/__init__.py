"""What keeps a table in order and from growing for ever: expiry, tags, branches, rollback, orphan files.

Everything here deletes, so everything here plans first and deletes afterwards: if anything that the decision rests on
can not be read, nothing is deleted.
"""
