// What programs in Java do through pgjdbc, and what tools ask DatabaseMetaData. Ends with code 1 at the first surprise.
//   java -cp postgresql.jar Harbour.java PORT

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.JDBCType;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

public class Harbour {
    static String port;

    interface Part {
        void run(Connection connection) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        port = arguments[0];
        try (Connection connection = connect()) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("CREATE TABLE vessels (id bigint PRIMARY KEY, name varchar NOT NULL, draught numeric(6, 2))");
                statement.execute("CREATE MATERIALIZED VIEW deep AS SELECT id, name FROM vessels WHERE draught > 10");
                statement.execute("CREATE VIEW names AS SELECT name FROM vessels");
            }
        }
        part("metadata", Harbour::metadata);
        part("values in text, then in binary", Harbour::values);
        part("batches", Harbour::batches);
        part("batches as one statement", Harbour::batches, "reWriteBatchedInserts", "true");
        part("transactions", Harbour::transactions);
        part("rows in portions", Harbour::portions);
        part("errors", Harbour::errors);
        part("copy", Harbour::copy);
        part("timeout", Harbour::timeout);
        part("simple protocol", Harbour::batches, "preferQueryMode", "simple");
    }

    static Connection connect(String... settings) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "root");
        for (int at = 0; at < settings.length; at += 2) {
            properties.setProperty(settings[at], settings[at + 1]);
        }
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/dev", properties);
    }

    static void part(String name, Part part, String... settings) throws Exception {
        try (Connection connection = connect(settings)) {
            part.run(connection);
        } catch (Throwable error) {
            System.out.println("FAILED " + name);
            error.printStackTrace(System.out);
            System.exit(1);
        }
        System.out.println("ok " + name);
    }

    static void same(Object expected, Object found) {
        if (expected == null ? found != null : !expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        try (rows) {
            while (rows.next()) {
                found.add(rows.getString(name));
            }
        }
        return found;
    }

    static int count(ResultSet rows) throws SQLException {
        try (rows) {
            int found = 0;
            while (rows.next()) {
                for (int at = 1; at <= rows.getMetaData().getColumnCount(); at++) {
                    rows.getObject(at);
                }
                found++;
            }
            return found;
        }
    }

    static void metadata(Connection connection) throws Exception {
        DatabaseMetaData data = connection.getMetaData();
        same("PostgreSQL", data.getDatabaseProductName());
        same("root", data.getUserName());
        same(List.of("dev"), column(data.getCatalogs(), "TABLE_CAT"));
        same(true, column(data.getSchemas(), "TABLE_SCHEM").contains("public"));
        same(List.of("public"), column(data.getSchemas(null, "publ%"), "TABLE_SCHEM"));
        same(true, column(data.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"));
        same(List.of("vessels"), column(data.getTables(null, "public", "vess%", new String[] {"TABLE"}), "TABLE_NAME"));
        String[] views = {"VIEW", "MATERIALIZED VIEW"};
        same(List.of("deep", "names"), column(data.getTables("dev", "public", "%e%", views), "TABLE_NAME").stream()
            .filter(name -> name.equals("deep") || name.equals("names")).toList());
        same(true, column(data.getTables(null, null, "%", null), "TABLE_NAME").contains("vessels"));
        try (ResultSet rows = data.getColumns(null, "public", "vessels", "%")) {
            rows.next();
            same("id", rows.getString("COLUMN_NAME"));
            same(Types.BIGINT, rows.getInt("DATA_TYPE"));
            same("int8", rows.getString("TYPE_NAME"));
            same(DatabaseMetaData.columnNullable, rows.getInt("NULLABLE"));  // a key may be, as in RisingWave
            rows.next();
            same(Types.VARCHAR, rows.getInt("DATA_TYPE"));
            same(DatabaseMetaData.columnNoNulls, rows.getInt("NULLABLE"));
            rows.next();
            same(Types.NUMERIC, rows.getInt("DATA_TYPE"));
            same("YES", rows.getString("IS_NULLABLE"));
            same(3, rows.getInt("ORDINAL_POSITION"));
            same(false, rows.next());
        }
        same(List.of("id", "name"), column(data.getColumns(null, "public", "deep", null), "COLUMN_NAME"));
        same(List.of("id"), column(data.getPrimaryKeys(null, "public", "vessels"), "COLUMN_NAME"));
        same(List.of("vessels_pkey"), column(data.getIndexInfo(null, "public", "vessels", true, true), "INDEX_NAME"));
        same(List.of("id"), column(data.getBestRowIdentifier(null, "public", "vessels", 0, true), "COLUMN_NAME"));
        same(0, count(data.getImportedKeys(null, "public", "vessels")));
        same(0, count(data.getExportedKeys(null, "public", "vessels")));
        same(0, count(data.getCrossReference(null, "public", "vessels", null, "public", "deep")));
        same(0, count(data.getProcedures(null, "public", "%")));
        same(0, count(data.getFunctions(null, "public", "no such function")));
        same(0, count(data.getFunctionColumns(null, "public", "no such function", "%")));
        same(0, count(data.getProcedureColumns(null, "public", "no such procedure", "%")));
        same(0, count(data.getUDTs(null, "public", "%", null)));
        same(1, count(data.getVersionColumns(null, "public", "no such table")));
        same(true, count(data.getTablePrivileges(null, "public", "vessels")) > 0);
        same(true, count(data.getColumnPrivileges(null, "public", "vessels", "%")) > 0);
        same(true, column(data.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "varchar", "timestamptz", "jsonb")));
        same(63, data.getMaxTableNameLength());
        same(true, data.getSQLKeywords().length() > 0);
        same(true, count(data.getClientInfoProperties()) > 0);
        same(Connection.TRANSACTION_READ_COMMITTED, data.getDefaultTransactionIsolation());
        connection.getTransactionIsolation();
        same("public", connection.getSchema());
        same("dev", connection.getCatalog());
        same(true, connection.isValid(5));
        connection.setReadOnly(true);
        connection.setReadOnly(false);
        connection.setClientInfo("ApplicationName", "crane");
        connection.setSchema("public");
        try (PreparedStatement statement = connection.prepareStatement("SELECT id, draught FROM vessels WHERE name = ?")) {
            ParameterMetaData parameters = statement.getParameterMetaData();
            same(1, parameters.getParameterCount());
            same(Types.VARCHAR, parameters.getParameterType(1));
            ResultSetMetaData columns = statement.getMetaData();
            same("int8", columns.getColumnTypeName(1));
            same(Types.NUMERIC, columns.getColumnType(2));
        }
    }

    static void values(Connection connection) throws Exception {
        String asked = "SELECT ?::int, ?::bigint, ?::smallint, ?::numeric, ?::double precision, ?::real, ?::boolean, ?::varchar,"
            + " ?::date, ?::timestamp, ?::timestamptz, ?::bytea, ?::int[], ?::varchar[], ?::int";
        OffsetDateTime moment = OffsetDateTime.of(2024, 2, 29, 12, 30, 0, 123_456_000, ZoneOffset.UTC);
        LocalDateTime local = LocalDateTime.of(1999, 12, 31, 23, 59, 59);
        try (PreparedStatement statement = connection.prepareStatement(asked)) {
            // The driver asks for binary values from the fifth execution on.
            for (int turn = 1; turn <= 8; turn++) {
                statement.setInt(1, -turn);
                statement.setLong(2, 1L << 40);
                statement.setShort(3, (short) turn);
                statement.setBigDecimal(4, new BigDecimal("-12345.6700"));
                statement.setDouble(5, 1.25);
                statement.setFloat(6, 0.5f);
                statement.setBoolean(7, turn % 2 == 0);
                statement.setString(8, "Ærø'; DROP TABLE vessels --");
                statement.setDate(9, Date.valueOf("2024-02-29"));
                statement.setObject(10, local);
                statement.setObject(11, moment);
                statement.setBytes(12, new byte[] {0, -1, 92});
                statement.setArray(13, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
                statement.setArray(14, connection.createArrayOf("varchar", new String[] {"a b", "c,d", null}));
                statement.setNull(15, Types.INTEGER);
                try (ResultSet rows = statement.executeQuery()) {
                    same(true, rows.next());
                    same(-turn, rows.getInt(1));
                    same(1L << 40, rows.getLong(2));
                    same((short) turn, rows.getShort(3));
                    same(0, new BigDecimal("-12345.67").compareTo(rows.getBigDecimal(4)));
                    same(1.25, rows.getDouble(5));
                    same(0.5f, rows.getFloat(6));
                    same(turn % 2 == 0, rows.getBoolean(7));
                    same("Ærø'; DROP TABLE vessels --", rows.getString(8));
                    same(Date.valueOf("2024-02-29"), rows.getDate(9));
                    same(local, rows.getObject(10, LocalDateTime.class));
                    same(Timestamp.valueOf(local), rows.getTimestamp(10));
                    same(moment.toInstant(), rows.getObject(11, OffsetDateTime.class).toInstant());
                    same(true, Arrays.equals(new byte[] {0, -1, 92}, rows.getBytes(12)));
                    Array numbers = rows.getArray(13);
                    same(Arrays.asList(1, null, 3), Arrays.asList((Integer[]) numbers.getArray()));
                    same(Arrays.asList("a b", "c,d", null), Arrays.asList((String[]) rows.getArray(14).getArray()));
                    same(null, rows.getObject(15));
                    same(JDBCType.NUMERIC.getVendorTypeNumber(), rows.getMetaData().getColumnType(4));
                    same(false, rows.next());
                }
            }
        }
    }

    static void batches(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("DELETE FROM vessels");
        }
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO vessels (id, name, draught) VALUES (?, ?, ?)")) {
            for (int id = 1; id <= 20; id++) {
                insert.setLong(1, id);
                insert.setString(2, "Tug " + id);
                insert.setBigDecimal(3, new BigDecimal(id));
                insert.addBatch();
            }
            same(20, insert.executeBatch().length);
        }
        connection.commit();
        try (Statement statement = connection.createStatement()) {
            statement.addBatch("UPDATE vessels SET draught = 30 WHERE id = 1");
            statement.addBatch("DELETE FROM vessels WHERE id = 20");
            same("[1, 1]", Arrays.toString(statement.executeBatch()));
            connection.commit();
            same(List.of("10"), column(statement.executeQuery("SELECT count(*) AS n FROM deep"), "n"));
        }
        connection.commit();
    }

    static void transactions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("INSERT INTO vessels VALUES (100, 'Kept', 1)");
            Savepoint before = connection.setSavepoint();
            statement.executeUpdate("INSERT INTO vessels VALUES (101, 'Undone', 1)");
            connection.rollback(before);
            connection.commit();
            statement.executeUpdate("INSERT INTO vessels VALUES (102, 'Undone', 1)");
            connection.rollback();
            same(List.of("Kept"), column(statement.executeQuery("SELECT name FROM vessels WHERE id >= 100"), "name"));
            connection.commit();
        }
        connection.setAutoCommit(true);
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO vessels VALUES (103, 'Known', 2)", Statement.RETURN_GENERATED_KEYS)) {
            same(1, insert.executeUpdate());
            same(List.of("103"), column(insert.getGeneratedKeys(), "id"));
        }
        try (Statement statement = connection.createStatement()) {
            same(2, statement.executeUpdate("DELETE FROM vessels WHERE id >= 100"));
        }
    }

    static void portions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM generate_series(1, ?) ORDER BY 1")) {
            statement.setFetchSize(70);
            statement.setInt(1, 1000);
            statement.setMaxRows(900);
            try (ResultSet rows = statement.executeQuery()) {
                int expected = 1;
                while (rows.next()) {
                    same(expected++, rows.getInt(1));
                }
                same(901, expected);
            }
        }
        connection.commit();
    }

    static void errors(Connection connection) throws Exception {
        same("42P01", state(connection, "SELECT * FROM shps"));
        same("42703", state(connection, "SELECT nme FROM vessels"));
        same("22012", state(connection, "SELECT 1 / 0"));
        same("42601", state(connection, "SELEC 1"));
        connection.setAutoCommit(false);
        same("22012", state(connection, "SELECT 1 / 0"));
        same("25P02", state(connection, "SELECT 1"));
        connection.rollback();
        same(null, state(connection, "SELECT 1"));
        connection.commit();
    }

    static String state(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
            return null;
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    static void copy(Connection connection) throws Exception {
        CopyManager copies = connection.unwrap(PGConnection.class).getCopyAPI();
        same(2L, copies.copyIn("COPY vessels FROM STDIN (FORMAT csv)", new StringReader("201,\"Ebb, the\",1\n202,Flow,2\n")));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        same(2L, copies.copyOut("COPY (SELECT * FROM vessels WHERE id > 200 ORDER BY id) TO STDOUT", out));
        same("201\tEbb, the\t1.00\n202\tFlow\t2.00\n", out.toString(StandardCharsets.UTF_8));
    }

    static void timeout(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery("SELECT sum(a::bigint * b) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b");
            throw new AssertionError("it was not stopped");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
        same(null, state(connection, "SELECT 1"));
    }
}
