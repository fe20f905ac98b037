"""`lakebed ui`: a lake in the browser, from this machine to this machine.

`facts` tells what there is to tell, as plain data; `app` hands it out as JSON to whoever has the token; the pages in
`static` show it. Nothing here changes a lake unless that was allowed when it was started.
"""
