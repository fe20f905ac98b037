"""The metadata files of a table, one module per kind: a frozen dataclass for the content, a `…Store` for the I/O.

    snapshot -> manifest_list -> manifest -> data_file     the files that make up one version of a table
    snapshot -> index_manifest                             its deletion vectors and hash indexes
    tag, consumer                                          what keeps a snapshot from expiring
    changelog                                              what stays of a snapshot that did
    paths, partition_text                                  where each of these files lies

`avro_container` and `json_file` are the two encodings; both turn damaged bytes into `CorruptFile`. Nothing here decides
what a table should contain: stores read and write what they are told.
"""
