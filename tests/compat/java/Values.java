import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Blob;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;

/**
 * The engine's in-memory values to and from the canonical JSON form that all judges share.
 *
 * <p>A value that does not fit its column exactly is an error here, never a rounding: a judge that
 * repairs its input would hide the mistakes it is there to find.
 */
final class Values {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final String BINARY_PREFIX = "base64:";

    private Values() {}

    // ---------------------------------------------------------------- engine -> JSON

    static ObjectNode row(InternalRow row, RowType type) {
        ObjectNode node = JSON.objectNode();
        List<DataField> fields = type.getFields();
        for (int i = 0; i < fields.size(); i++) {
            node.set(fields.get(i).name(), value(row, i, fields.get(i).type()));
        }
        return node;
    }

    private static JsonNode value(DataGetters from, int at, DataType type) {
        if (from.isNullAt(at)) {
            return JSON.nullNode();
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return JSON.booleanNode(from.getBoolean(at));
            case TINYINT:
                return JSON.numberNode((int) from.getByte(at));
            case SMALLINT:
                return JSON.numberNode((int) from.getShort(at));
            case INTEGER:
                return JSON.numberNode(from.getInt(at));
            case BIGINT:
                return JSON.numberNode(from.getLong(at));
            case FLOAT:
                return real(from.getFloat(at)); // widening to double is exact
            case DOUBLE:
                return real(from.getDouble(at));
            case CHAR:
            case VARCHAR:
                return JSON.textNode(from.getString(at).toString());
            case BINARY:
            case VARBINARY:
                return binary(from.getBinary(at));
            case BLOB:
                return binary(from.getBlob(at).toData());
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return JSON.textNode(
                        from.getDecimal(at, decimal.getPrecision(), decimal.getScale())
                                .toBigDecimal()
                                .toPlainString());
            case DATE:
                return JSON.textNode(date(LocalDate.ofEpochDay(from.getInt(at))));
            case TIME_WITHOUT_TIME_ZONE:
                return JSON.textNode(time(LocalTime.ofNanoOfDay(from.getInt(at) * 1_000_000L)));
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return JSON.textNode(timestamp(from.getTimestamp(at, ((TimestampType) type).getPrecision())));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return JSON.textNode(
                        timestamp(from.getTimestamp(at, ((LocalZonedTimestampType) type).getPrecision())) + "+00:00");
            case ARRAY:
                return array(from.getArray(at), ((ArrayType) type).getElementType());
            case MAP:
                return entries(from.getMap(at), ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return entries(from.getMap(at), ((MultisetType) type).getElementType(), new IntType(false));
            case ROW:
                RowType rowType = (RowType) type;
                return row(from.getRow(at, rowType.getFieldCount()), rowType);
            case VARIANT:
                Variant variant = from.getVariant(at);
                ObjectNode parts = JSON.objectNode();
                parts.set("value", binary(variant.value()));
                parts.set("metadata", binary(variant.metadata()));
                return parts;
            default:
                throw new UnsupportedOperationException("the Java judge has no canonical form for " + type);
        }
    }

    private static JsonNode real(double value) {
        return Double.isFinite(value) ? JSON.numberNode(value) : JSON.textNode(Double.toString(value));
    }

    private static JsonNode binary(byte[] bytes) {
        return JSON.textNode(BINARY_PREFIX + Base64.getEncoder().encodeToString(bytes));
    }

    private static ArrayNode array(InternalArray array, DataType element) {
        ArrayNode node = JSON.arrayNode();
        for (int i = 0; i < array.size(); i++) {
            node.add(value(array, i, element));
        }
        return node;
    }

    /** Marked, because a list of pairs alone could as well be an array of arrays; the other side sorts it. */
    private static ObjectNode entries(InternalMap map, DataType keyType, DataType valueType) {
        ObjectNode marked = JSON.objectNode();
        ArrayNode node = marked.putArray("$map");
        InternalArray keys = map.keyArray();
        InternalArray values = map.valueArray();
        for (int i = 0; i < map.size(); i++) {
            node.add(JSON.arrayNode().add(value(keys, i, keyType)).add(value(values, i, valueType)));
        }
        return marked;
    }

    private static String date(LocalDate date) {
        int year = date.getYear();
        return String.format(
                "%s%04d-%02d-%02d", year < 0 ? "-" : "", Math.abs(year), date.getMonthValue(), date.getDayOfMonth());
    }

    /** No fraction when it is zero, six digits when they are enough, nine otherwise. */
    private static String time(LocalTime time) {
        int nanos = time.getNano();
        String seconds = String.format("%02d:%02d:%02d", time.getHour(), time.getMinute(), time.getSecond());
        if (nanos == 0) {
            return seconds;
        }
        return seconds + (nanos % 1000 == 0 ? String.format(".%06d", nanos / 1000) : String.format(".%09d", nanos));
    }

    private static String timestamp(Timestamp timestamp) {
        LocalDateTime local = timestamp.toLocalDateTime();
        return date(local.toLocalDate()) + "T" + time(local.toLocalTime());
    }

    // ---------------------------------------------------------------- JSON -> engine

    static GenericRow row(JsonNode node, RowType type) {
        List<DataField> fields = type.getFields();
        GenericRow row = new GenericRow(fields.size());
        for (int i = 0; i < fields.size(); i++) {
            JsonNode member = node.get(fields.get(i).name());
            if (member == null) {
                throw new IllegalArgumentException("the row " + node + " lacks column " + fields.get(i).name());
            }
            row.setField(i, value(member, fields.get(i).type()));
        }
        if (node.size() != fields.size()) {
            throw new IllegalArgumentException("the row " + node + " has columns that are not in " + type);
        }
        return row;
    }

    static Object value(JsonNode node, DataType type) {
        if (node.isNull()) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return node.booleanValue();
            case TINYINT:
                return (byte) integer(node, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case SMALLINT:
                return (short) integer(node, Short.MIN_VALUE, Short.MAX_VALUE);
            case INTEGER:
                return (int) integer(node, Integer.MIN_VALUE, Integer.MAX_VALUE);
            case BIGINT:
                return integer(node, Long.MIN_VALUE, Long.MAX_VALUE);
            case FLOAT:
                return (float) real(node);
            case DOUBLE:
                return real(node);
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString(node.textValue());
            case BINARY:
            case VARBINARY:
                return binary(node);
            case BLOB:
                return Blob.fromData(binary(node));
            case DECIMAL:
                return decimal(node, (DecimalType) type);
            case DATE:
                return (int) LocalDate.parse(node.textValue()).toEpochDay();
            case TIME_WITHOUT_TIME_ZONE:
                long nanos = LocalTime.parse(node.textValue()).toNanoOfDay();
                if (nanos % 1_000_000 != 0) {
                    throw new IllegalArgumentException("the engine keeps TIME in milliseconds: " + node);
                }
                return (int) (nanos / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(node.textValue()));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                String text = node.textValue();
                if (!text.endsWith("+00:00")) {
                    throw new IllegalArgumentException("a local-zoned timestamp must end in +00:00: " + node);
                }
                return Timestamp.fromLocalDateTime(LocalDateTime.parse(text.substring(0, text.length() - 6)));
            case ARRAY:
                DataType element = ((ArrayType) type).getElementType();
                Object[] items = new Object[node.size()];
                for (int i = 0; i < items.length; i++) {
                    items[i] = value(node.get(i), element);
                }
                return new GenericArray(items);
            case MAP:
                return map(node, ((MapType) type).getKeyType(), ((MapType) type).getValueType());
            case MULTISET:
                return map(node, ((MultisetType) type).getElementType(), new IntType(false));
            case ROW:
                return row(node, (RowType) type);
            case VARIANT:
                return new GenericVariant(binary(node.get("value")), binary(node.get("metadata")));
            default:
                throw new UnsupportedOperationException("the Java judge cannot write " + type);
        }
    }

    private static long integer(JsonNode node, long lowest, long highest) {
        if (!node.isIntegralNumber() || !node.canConvertToLong()) {
            throw new IllegalArgumentException("not an integer: " + node);
        }
        long value = node.longValue();
        if (value < lowest || value > highest) {
            throw new IllegalArgumentException("out of range: " + node);
        }
        return value;
    }

    private static double real(JsonNode node) {
        return node.isTextual() ? Double.parseDouble(node.textValue()) : node.doubleValue();
    }

    private static byte[] binary(JsonNode node) {
        String text = node.textValue();
        if (text == null || !text.startsWith(BINARY_PREFIX)) {
            throw new IllegalArgumentException("binary values are spelled base64:...: " + node);
        }
        return Base64.getDecoder().decode(text.substring(BINARY_PREFIX.length()));
    }

    private static Decimal decimal(JsonNode node, DecimalType type) {
        BigDecimal exact = new BigDecimal(node.textValue());
        Decimal decimal = Decimal.fromBigDecimal(exact, type.getPrecision(), type.getScale());
        if (decimal == null || decimal.toBigDecimal().compareTo(exact) != 0) {
            throw new IllegalArgumentException(node + " does not fit " + type);
        }
        return decimal;
    }

    private static GenericMap map(JsonNode node, DataType keyType, DataType valueType) {
        Map<Object, Object> entries = new LinkedHashMap<>();
        for (JsonNode entry : node) {
            entries.put(value(entry.get(0), keyType), value(entry.get(1), valueType));
        }
        return new GenericMap(entries);
    }
}
