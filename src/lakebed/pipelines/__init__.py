"""Pipelines: sources, streaming INSERTs and materialized tables that keep running together.

nodes      what runs: each brings one table up to date from others, step by step
graph      which node comes before which
runner     when each node takes its next step, and what happens when one fails
written    a pipeline as a file of SQL, or as functions of Python
streaming  streaming mode of `lake.sql`: INSERTs as jobs, SELECTs as changes that come
jobs       INSERTs in the background of whoever typed them
select     which way the changes of a SELECT come
live       what a SELECT gives
rehearsal  the same statements on a lake that is thrown away: what is wrong is known before anything starts
"""
