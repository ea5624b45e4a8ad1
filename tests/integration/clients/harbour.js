// What programs in JavaScript do through node-postgres. Ends with code 1 at the first surprise.
//   NODE_PATH=…/node_modules node harbour.js PORT

const assert = require('node:assert/strict');
const { Client, Pool } = require('pg');

const address = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'root', database: 'dev' };

const parts = {
  async 'values by their types'(client) {
    const { rows, fields } = await client.query(
      `SELECT $1::int AS i, $2::bigint AS b, $3::numeric AS n, $4::double precision AS d, $5::boolean AS ok,
              $6::varchar AS t, $7::timestamptz AS at, $8::jsonb AS doc, $9::int[] AS list, $10::bytea AS raw, $11::int AS none`,
      [-7, '1099511627776', '12.5', 1.25, true, "Ærø's", new Date('2024-02-29T12:30:00Z'), { berth: [1, null] },
        [1, null, 3], Buffer.from([0, 255]), null]);
    assert.deepEqual(rows, [{
      i: -7, b: '1099511627776', n: '12.5', d: 1.25, ok: true, t: "Ærø's", at: new Date('2024-02-29T12:30:00Z'),
      doc: { berth: [1, null] }, list: [1, null, 3], raw: Buffer.from([0, 255]), none: null,
    }]);
    assert.deepEqual(fields.slice(0, 3).map((field) => field.dataTypeID), [23, 20, 1700]);
  },

  async 'statements and prepared statements'(client) {
    await client.query('CREATE TABLE lighters (id int PRIMARY KEY, name varchar); CREATE MATERIALIZED VIEW lit AS SELECT count(*) AS n FROM lighters');
    const insert = { name: 'add', text: 'INSERT INTO lighters VALUES ($1, $2)' };
    for (let id = 1; id <= 3; id++) {
      assert.equal((await client.query({ ...insert, values: [id, `Lighter ${id}`] })).rowCount, 1);
    }
    const found = await client.query({ text: 'SELECT * FROM lighters WHERE id > $1 ORDER BY id', values: [1], rowMode: 'array' });
    assert.deepEqual(found.rows, [[2, 'Lighter 2'], [3, 'Lighter 3']]);
    assert.deepEqual((await client.query('SELECT * FROM lit')).rows, [{ n: '3' }]);
    const several = await client.query('SELECT 1 AS a; SELECT 2 AS b');
    assert.deepEqual(several.map((one) => one.rows), [[{ a: 1 }], [{ b: 2 }]]);
  },

  async 'transactions'(client) {
    await client.query('BEGIN');
    await client.query('INSERT INTO lighters VALUES (10, $1)', ['Undone']);
    await client.query('ROLLBACK');
    assert.equal((await client.query('SELECT * FROM lighters WHERE id = 10')).rowCount, 0);
  },

  async 'errors with their codes'(client) {
    await assert.rejects(client.query('SELECT * FROM shps'), (error) => error.code === '42P01' && error.severity === 'ERROR');
    await assert.rejects(client.query('SELECT 1 / $1::int', [0]), { code: '22012' });
    await assert.rejects(client.query('SELEC 1'), (error) => error.code === '42601' && error.position === '1');
    await assert.rejects(client.query('SELECT $1::int', ['tide']), { code: '22P02' });
    assert.deepEqual((await client.query('SELECT 1 AS one')).rows, [{ one: 1 }]);
  },

  async 'notices and settings'(client) {
    await client.query("SET application_name = 'crane'");
    assert.deepEqual((await client.query('SHOW application_name')).rows, [{ application_name: 'crane' }]);
  },

  async 'a pool of clients'() {
    const pool = new Pool({ ...address, max: 5 });
    const asked = Array.from({ length: 20 }, (_, at) => pool.query('SELECT name FROM lighters WHERE id = $1', [at % 3 + 1]));
    const names = (await Promise.all(asked)).map((result) => result.rows[0].name);
    assert.equal(new Set(names).size, 3);
    await pool.end();
  },
};

(async () => {
  for (const [name, part] of Object.entries(parts)) {
    const client = new Client(address);
    await client.connect();
    try {
      await part(client);
      console.log(`ok ${name}`);
    } catch (error) {
      console.log(`FAILED ${name}\n${error.stack}`);
      process.exit(1);
    }
    await client.end();
  }
})();
