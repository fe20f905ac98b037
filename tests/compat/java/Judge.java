import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactCoordinator;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactTask;
import org.apache.paimon.bucket.BucketFunction;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.codegen.CodeGenUtils;
import org.apache.paimon.codegen.Projection;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.RowKeyExtractor;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.tag.Tag;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.Pair;
import org.apache.paimon.utils.SerializationUtils;

/**
 * A long-lived process that lets tests drive the Java engine: one JSON command per line on standard
 * input, one JSON answer per line on standard output, rows in JSON-lines files named by the command.
 *
 * <p>It only translates. Nothing about the table format is decided here.
 */
public final class Judge {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final IOManager spill;

    private Judge(String spillDirectory) {
        this.spill = IOManager.create(spillDirectory);
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // a stray println of some library must not enter the protocol
        Path spillDirectory = Files.createTempDirectory("java-judge");
        Judge judge = new Judge(spillDirectory.toString());
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ObjectNode answer = MAPPER.createObjectNode();
            try {
                answer.set("ok", judge.run(MAPPER.readTree(line)));
            } catch (Throwable failure) {
                StringWriter trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                answer.put("error", failure.toString());
                answer.put("trace", trace.toString());
            }
            answers.print(MAPPER.writeValueAsString(answer) + "\n");
            answers.flush();
        }
        judge.spill.close();
        Files.deleteIfExists(spillDirectory);
        System.exit(0); // compaction and file-system threads of the engine are not all daemons
    }

    private JsonNode run(JsonNode command) throws Exception {
        switch (command.get("do").textValue()) {
            case "version":
                return MAPPER.createObjectNode().put("implementation", "paimon-java").put("version", version());
            case "create":
                return create(command);
            case "read":
                return read(command);
            case "append":
                return append(command);
            case "compact":
                return compact(command);
            case "create_tag":
                return createTag(command);
            case "look_after":
                return lookAfter(command);
            case "binary_rows":
                return binaryRows(command);
            case "buckets":
                return buckets(command);
            default:
                throw new IllegalArgumentException("unknown command " + command.get("do"));
        }
    }

    private static String version() {
        String jar = Table.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*paimon-.*-([^-]*)\\.jar", "$1");
    }

    // ---------------------------------------------------------------- tables

    /** A catalog per command and no caches: others change the files between two commands. */
    private static Catalog catalog(JsonNode command) {
        Options options = new Options();
        options.set("warehouse", command.get("warehouse").textValue());
        options.set("cache-enabled", "false");
        return CatalogFactory.createCatalog(CatalogContext.create(options));
    }

    private static Identifier identifier(JsonNode command) {
        return Identifier.create(command.get("database").textValue(), command.get("table").textValue());
    }

    private static Table table(JsonNode command) throws Exception {
        try (Catalog catalog = catalog(command)) {
            return catalog.getTable(identifier(command)).copy(options(command));
        }
    }

    private static FileStoreTable fileStoreTable(JsonNode command) throws Exception {
        return (FileStoreTable) table(command);
    }

    private static Map<String, String> options(JsonNode command) {
        Map<String, String> options = new HashMap<>();
        if (command.has("options")) {
            command.get("options").fields().forEachRemaining(e -> options.put(e.getKey(), e.getValue().textValue()));
        }
        return options;
    }

    private static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(item -> texts.add(item.textValue()));
        return texts;
    }

    private static JsonNode create(JsonNode command) throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode field : command.get("fields")) {
            schema.column(field.get("name").textValue(), DataTypeJsonParser.parseDataType(field.get("type")));
        }
        schema.primaryKey(texts(command.get("primary_keys")));
        schema.partitionKeys(texts(command.get("partition_keys")));
        schema.options(options(command));
        try (Catalog catalog = catalog(command)) {
            catalog.createDatabase(command.get("database").textValue(), true);
            catalog.createTable(identifier(command), schema.build(), false);
        }
        return MAPPER.createObjectNode();
    }

    /** Tags, branches, rollback, orphans, statistics: one method of the engine each. */
    private static JsonNode lookAfter(JsonNode command) throws Exception {
        FileStoreTable table = fileStoreTable(command);
        String name = command.path("name").asText(null);
        switch (command.get("how").textValue()) {
            case "create_tag_for_a_day":
                table.createTag(name, Duration.ofDays(1));
                break;
            case "delete_tag":
                table.deleteTag(name);
                break;
            case "create_branch":
                table.createBranch(name, command.get("tag").textValue());
                break;
            case "fast_forward":
                table.fastForward(name);
                break;
            case "rollback_to_tag":
                table.rollbackTo(name);
                break;
            case "rollback_to_snapshot":
                table.rollbackTo(command.get("snapshot").longValue());
                break;
            case "orphans":
                long now = System.currentTimeMillis();
                return MAPPER.createObjectNode()
                        .put("count", new LocalOrphanFilesClean(table, now, true).clean().getDeletedFileCount());
            case "statistics":
                return MAPPER.readTree(table.statistics().get().toJson());
            case "tag_times":
                Tag tag = table.tagManager().getOrThrow(name);
                return MAPPER.createObjectNode()
                        .put("created", String.valueOf(tag.getTagCreateTime()))
                        .put("retained", String.valueOf(tag.getTagTimeRetained()));
            default:
                throw new IllegalArgumentException("unknown " + command.get("how"));
        }
        return MAPPER.createObjectNode();
    }

    private static JsonNode createTag(JsonNode command) throws Exception {
        Table table = table(command);
        if (command.hasNonNull("snapshot")) {
            table.createTag(command.get("name").textValue(), command.get("snapshot").longValue());
        } else {
            table.createTag(command.get("name").textValue());
        }
        return MAPPER.createObjectNode();
    }

    // ---------------------------------------------------------------- rows out

    private JsonNode read(JsonNode command) throws Exception {
        Table table = table(command);
        ReadBuilder builder = table.newReadBuilder();
        if (command.hasNonNull("filter")) {
            builder.withFilter(equalities(command.get("filter"), table.rowType()));
        }
        if (command.hasNonNull("columns")) {
            builder.withProjection(
                    texts(command.get("columns")).stream().mapToInt(table.rowType()::getFieldIndex).toArray());
        }
        RowType type = builder.readType();
        long count = 0;
        try (BufferedWriter out = Files.newBufferedWriter(Paths.get(command.get("out").textValue()));
                RecordReaderIterator<InternalRow> rows = new RecordReaderIterator<>(reader(builder))) {
            while (rows.hasNext()) {
                out.write(MAPPER.writeValueAsString(Values.row(rows.next(), type)));
                out.write("\n");
                count++;
            }
        }
        return MAPPER.createObjectNode().put("rows", count);
    }

    private RecordReader<InternalRow> reader(ReadBuilder builder) throws Exception {
        return builder.newRead().withIOManager(spill).executeFilter().createReader(builder.newScan().plan());
    }

    private static Predicate equalities(JsonNode filter, RowType type) {
        PredicateBuilder builder = new PredicateBuilder(type);
        List<Predicate> conditions = new ArrayList<>();
        filter.fields().forEachRemaining(entry -> {
            int at = type.getFieldIndex(entry.getKey());
            Object literal = Values.value(entry.getValue(), type.getTypeAt(at));
            conditions.add(literal == null ? builder.isNull(at) : builder.equal(at, literal));
        });
        return PredicateBuilder.and(conditions);
    }

    // ---------------------------------------------------------------- rows in

    private JsonNode append(JsonNode command) throws Exception {
        FileStoreTable table = fileStoreTable(command);
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        if (command.path("overwrite").booleanValue()) {
            builder.withOverwrite();
        }
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit();
                BufferedReader rows = Files.newBufferedReader(Paths.get(command.get("in").textValue()))) {
            write.withIOManager(spill);
            Buckets dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC ? new Buckets(table) : null;
            for (String line = rows.readLine(); line != null; line = rows.readLine()) {
                JsonNode kindAndRow = MAPPER.readTree(line);
                GenericRow row = Values.row(kindAndRow.get(1), table.rowType());
                row.setRowKind(RowKind.fromShortString(kindAndRow.get(0).textValue()));
                if (dynamic == null) {
                    write.write(row);
                } else {
                    write.write(row, dynamic.assign(row));
                }
            }
            commit.commit(write.prepareCommit());
        }
        return snapshot(table);
    }

    private static JsonNode snapshot(Table table) {
        ObjectNode node = MAPPER.createObjectNode();
        table.latestSnapshot().ifPresent(snapshot -> node.put("snapshot", snapshot.id()));
        return node;
    }

    /** Dynamic-bucket tables leave the choice of a bucket to their callers; this is the engine's own chooser. */
    private static final class Buckets {
        private final RowKeyExtractor keys;
        private final HashBucketAssigner assigner;

        Buckets(FileStoreTable table) {
            CoreOptions options = table.coreOptions();
            this.keys = table.createRowKeyExtractor();
            this.assigner = new HashBucketAssigner(
                    table.snapshotManager(), "java-judge", table.store().newIndexFileHandler(), 1, 1, 0,
                    options.dynamicBucketTargetRowNum(), options.dynamicBucketMaxBuckets());
        }

        int assign(InternalRow row) {
            keys.setRecord(row);
            return assigner.assign(keys.partition(), keys.trimmedPrimaryKey().hashCode());
        }
    }

    private JsonNode compact(JsonNode command) throws Exception {
        FileStoreTable table = fileStoreTable(command);
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(spill);
            if (table.coreOptions().dataEvolutionEnabled()) {
                commit.commit(joinColumns(table));
            } else if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
                commit.commit(rewriteSmallFiles(table));
            } else {
                Set<Pair<BinaryRow, Integer>> buckets = new LinkedHashSet<>();
                for (ManifestEntry entry : table.store().newScan().plan().files()) {
                    buckets.add(Pair.of(entry.partition(), entry.bucket()));
                }
                for (Pair<BinaryRow, Integer> bucket : buckets) {
                    write.compact(bucket.getLeft(), bucket.getRight(), command.path("full").asBoolean(true));
                }
                commit.commit(write.prepareCommit());
            }
        }
        return snapshot(table);
    }

    private static List<CommitMessage> rewriteSmallFiles(FileStoreTable table) throws Exception {
        List<CommitMessage> messages = new ArrayList<>();
        BaseAppendFileStoreWrite write = (BaseAppendFileStoreWrite) table.store().newWrite("java-judge");
        try {
            for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
                messages.add(task.doCompact(table, write));
            }
        } finally {
            write.close();
        }
        return messages;
    }

    /** Where columns have files of their own. Only the newer release knows rows that are marked as deleted there. */
    private static List<CommitMessage> joinColumns(FileStoreTable table) throws Exception {
        Snapshot snapshot = table.snapshotManager().latestSnapshot();
        FileStoreTable eager = table.copy(Collections.singletonMap("compaction.min.file-num", "2"));
        DataEvolutionCompactCoordinator coordinator = null;
        for (Constructor<?> made : DataEvolutionCompactCoordinator.class.getConstructors()) {
            Class<?>[] kinds = made.getParameterTypes();
            if (kinds.length == 4 && kinds[3] == Snapshot.class) {
                coordinator = (DataEvolutionCompactCoordinator) made.newInstance(eager, false, false, snapshot);
            } else if (kinds.length == 3) {
                coordinator = (DataEvolutionCompactCoordinator) made.newInstance(eager, false, false);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        try {
            while (true) {
                for (DataEvolutionCompactTask task : coordinator.plan()) {
                    messages.add(task.doCompact(eager, "java-judge"));
                }
            }
        } catch (EndOfScanException end) {
            // all files were looked at
        }
        try {
            Class<?> kind = Class.forName(
                    "org.apache.paimon.append.dataevolution.DataEvolutionCompactionCommitPreparation");
            Object marks = kind.getConstructor(FileStoreTable.class, Snapshot.class).newInstance(eager, snapshot);
            for (Object message : (List<?>) kind.getMethod("prepare", List.class).invoke(marks, messages)) {
                messages.add((CommitMessage) message);
            }
        } catch (ClassNotFoundException older) {
            // no row is marked
        }
        return messages;
    }

    // ---------------------------------------------------------------- the row codec and its hash

    /** The two encoders of the engine: generated projections make keys, the serializer makes statistics. */
    private static JsonNode binaryRows(JsonNode command) {
        List<DataField> fields = new ArrayList<>();
        for (JsonNode field : command.get("fields")) {
            fields.add(new DataField(
                    fields.size(), field.get("name").textValue(), DataTypeJsonParser.parseDataType(field.get("type"))));
        }
        RowType type = new RowType(fields);
        int[] all = java.util.stream.IntStream.range(0, fields.size()).toArray();
        Projection projection = CodeGenUtils.newProjection(type, all);
        InternalRowSerializer serializer = new InternalRowSerializer(type);
        BucketFunction function = BucketFunction.create(
                CoreOptions.BucketFunctionType.valueOf(command.get("bucket_function").textValue().toUpperCase()), type);
        ArrayNode answers = MAPPER.createArrayNode();
        for (JsonNode node : command.get("rows")) {
            GenericRow row = Values.row(node, type);
            BinaryRow key = projection.apply(row);
            ObjectNode answer = answers.addObject();
            answer.put("hex", hex(SerializationUtils.serializeBinaryRow(key)));
            answer.put("stats_hex", hex(SerializationUtils.serializeBinaryRow(serializer.toBinaryRow(row))));
            answer.put("hash", key.hashCode());
            answer.put("bucket", function.bucket(key, command.get("num_buckets").intValue()));
        }
        return answers;
    }

    private static JsonNode buckets(JsonNode command) throws Exception {
        FileStoreTable table = fileStoreTable(command);
        RowKeyExtractor keys = table.createRowKeyExtractor();
        ArrayNode answers = MAPPER.createArrayNode();
        for (JsonNode node : command.get("rows")) {
            keys.setRecord(Values.row(node, table.rowType()));
            answers.add(keys.bucket());
        }
        return answers;
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
