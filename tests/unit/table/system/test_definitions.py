"""Columns and types of the system tables, as other engines expect them by name and position."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakebed.table.system import SYSTEM_TABLES

LONG, INT, TEXT, TIME = pa.int64(), pa.int32(), pa.string(), pa.timestamp("ms")

COLUMNS = {
    "snapshots": "snapshot_id schema_id commit_user commit_identifier commit_kind commit_time base_manifest_list "
    "delta_manifest_list changelog_manifest_list total_record_count delta_record_count changelog_record_count "
    "watermark next_row_id operation writer_version",
    "schemas": "schema_id fields partition_keys primary_keys options comment update_time",
    "options": "key value",
    "files": "partition bucket file_path file_format schema_id level record_count file_size_in_bytes min_key max_key "
    "null_value_counts min_value_stats max_value_stats min_sequence_number max_sequence_number creation_time "
    "deleteRowCount file_source first_row_id write_cols",
    "file_key_ranges": "partition bucket file_path file_format schema_id level record_count file_size_in_bytes min_key "
    "max_key first_row_id",
    "file_indexes": "partition bucket file_path file_size_in_bytes record_count schema_id column_name index_type "
    "storage_type index_file_path index_size_in_bytes index_container_size_in_bytes is_empty",
    "manifests": "file_name file_size num_added_files num_deleted_files schema_id min_partition_stats "
    "max_partition_stats min_row_id max_row_id",
    "partitions": "partition record_count file_size_in_bytes file_count last_update_time created_at created_by "
    "updated_by options total_buckets done deleted_record_count",
    "buckets": "partition bucket record_count file_size_in_bytes file_count last_update_time",
    "tags": "tag_name snapshot_id schema_id commit_time record_count create_time time_retained",
    "branches": "branch_name create_time",
    "consumers": "consumer_id next_snapshot_id",
    "aggregation_fields": "field_name field_type function function_options comment",
    "statistics": "snapshot_id schema_id mergedRecordCount mergedRecordSize colstat",
    "table_indexes": "partition bucket index_type file_name file_size row_count dv_ranges row_range_start "
    "row_range_end index_field_id index_field_name",
    # Ours alone.
    "commits_metrics": "snapshot_id commit_time commit_user commit_kind operation since_last_ms partitions buckets "
    "files_added files_removed bytes_added bytes_removed rows_added rows_removed changelog_rows total_rows",
    "compactions": "snapshot_id commit_time commit_user reason duration_ms partitions buckets files_in files_out "
    "bytes_in bytes_out rows_in rows_out write_amplification",
    "why": "",
}
NOT_TEXT = {
    LONG: "snapshot_id schema_id commit_identifier total_record_count delta_record_count changelog_record_count "
    "watermark next_row_id record_count file_size_in_bytes min_sequence_number max_sequence_number deleteRowCount "
    "first_row_id index_size_in_bytes index_container_size_in_bytes file_size num_added_files num_deleted_files "
    "min_row_id max_row_id file_count deleted_record_count next_snapshot_id mergedRecordCount mergedRecordSize "
    "row_count row_range_start row_range_end since_last_ms duration_ms files_added files_removed bytes_added "
    "bytes_removed rows_added rows_removed changelog_rows total_rows files_in files_out bytes_in bytes_out rows_in "
    "rows_out",
    INT: "bucket level total_buckets index_field_id partitions buckets",
    pa.float64(): "write_amplification",
    TIME: "commit_time update_time creation_time last_update_time created_at create_time",
    pa.bool_(): "is_empty done",
    pa.list_(TEXT): "write_cols",
}
TYPES = {name: kind for kind, names in NOT_TEXT.items() for name in names.split()}


def test_the_list_is_complete() -> None:
    """Every system table is registered under its own name."""
    assert sorted(SYSTEM_TABLES) == sorted(COLUMNS)
    assert all(definition.name == name for name, definition in SYSTEM_TABLES.items())


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    """Names, order and types are those of Paimon."""
    schema = SYSTEM_TABLES[name].arrow_schema
    assert schema.names == COLUMNS[name].split()
    for field in schema:
        if field.name != "dv_ranges":
            assert field.type == TYPES.get(field.name, TEXT), field.name


def test_ranges_of_deletion_vectors() -> None:
    """Vectors come as rows with the names that index manifests use."""
    kind = SYSTEM_TABLES["table_indexes"].arrow_schema.field("dv_ranges").type
    assert [(field.name, field.type, field.nullable) for field in kind.value_type] == [
        ("f0", TEXT, False),
        ("f1", INT, False),
        ("f2", INT, False),
        ("_CARDINALITY", LONG, True),
    ]
