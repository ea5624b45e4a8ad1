--- dbt list_relations
select
  'dev' as database,
  tablename as name,
  schemaname as schema,
  'table' as type
from pg_tables
where schemaname ilike 'public'
union all
select
  'dev' as database,
  viewname as name,
  schemaname as schema,
  'view' as type
from pg_views
where schemaname ilike 'public'
union all
select
  'dev' as database,
  matviewname as name,
  schemaname as schema,
  'materialized_view' as type
from pg_matviews
where schemaname ilike 'public'

--- dbt list_schemas
select distinct nspname from pg_namespace

--- dbt check_schema_exists
select count(*) from pg_namespace where nspname = 'public'

--- dbt get_columns
select
    column_name,
    data_type,
    character_maximum_length,
    numeric_precision,
    numeric_scale
from "dev".INFORMATION_SCHEMA.columns
where table_name = 'arrivals'
  and table_schema = 'public'
order by ordinal_position

--- dbt catalog
select
    'dev' as table_database,
    sch.nspname as table_schema,
    tbl.relname as table_name,
    case tbl.relkind
        when 'v' then 'VIEW'
        when 'm' then 'MATERIALIZED VIEW'
        else 'BASE TABLE'
    end as table_type,
    tbl_desc.description as table_comment,
    col.attname as column_name,
    col.attnum as column_index,
    pg_catalog.format_type(col.atttypid, col.atttypmod) as column_type,
    col_desc.description as column_comment,
    pg_get_userbyid(tbl.relowner) as table_owner
from pg_catalog.pg_namespace sch
join pg_catalog.pg_class tbl on tbl.relnamespace = sch.oid
join pg_catalog.pg_attribute col on col.attrelid = tbl.oid
left outer join pg_catalog.pg_description tbl_desc on (tbl_desc.objoid = tbl.oid and tbl_desc.objsubid = 0)
left outer join pg_catalog.pg_description col_desc on (col_desc.objoid = tbl.oid and col_desc.objsubid = col.attnum)
where (upper(sch.nspname) = upper('public'))
  and not pg_is_other_temp_schema(sch.oid)
  and tbl.relpersistence in ('p', 'u')
  and tbl.relkind in ('r', 'v', 'f', 'p', 'm')
  and col.attnum > 0
  and not col.attisdropped
order by sch.nspname, tbl.relname, col.attnum

--- dbt relation dependencies
with relation as (
    select
        pg_rewrite.ev_class as class,
        pg_rewrite.oid as id
    from pg_rewrite
),
class as (
    select
        oid as id,
        relname as name,
        relnamespace as schema,
        relkind as kind
    from pg_class
),
dependency as (
    select distinct
        pg_depend.objid as id,
        pg_depend.refobjid as ref
    from pg_depend
),
schema as (
    select
        pg_namespace.oid as id,
        pg_namespace.nspname as name
    from pg_namespace
    where nspname != 'information_schema' and nspname not like 'pg\_%'
),
referenced as (
    select
        relation.id as id,
        referenced_class.name,
        referenced_class.schema,
        referenced_class.kind
    from relation
    join class as referenced_class on relation.class = referenced_class.id
    where referenced_class.kind in ('r', 'v', 'm')
),
relationships as (
    select
        referenced.name as referenced_name,
        referenced.schema as referenced_schema_id,
        dependent_class.name as dependent_name,
        dependent_class.schema as dependent_schema_id,
        referenced.kind as kind
    from referenced
    join dependency on referenced.id = dependency.id
    join class as dependent_class on dependency.ref = dependent_class.id
    where
        (referenced.name != dependent_class.name or referenced.schema != dependent_class.schema)
)
select
    referenced_schema.name as referenced_schema,
    relationships.referenced_name as referenced_name,
    dependent_schema.name as dependent_schema,
    relationships.dependent_name as dependent_name
from relationships
join schema as dependent_schema on relationships.dependent_schema_id = dependent_schema.id
join schema as referenced_schema on relationships.referenced_schema_id = referenced_schema.id
group by referenced_schema, referenced_name, dependent_schema, dependent_name
order by referenced_schema, referenced_name, dependent_schema, dependent_name

--- metabase describe fields
SELECT
  c.column_name AS name,
  CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name) ELSE FORMAT('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type",
  c.ordinal_position - 1 AS "database-position",
  c.table_schema AS "table-schema",
  c.table_name AS "table-name",
  pk.column_name IS NOT NULL AS "pk?",
  COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
  ((column_default IS NULL) OR (LOWER(column_default) = 'null')) AND (is_nullable = 'NO') AND NOT (((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO')) AS "database-required",
  ((column_default IS NOT NULL) AND (column_default LIKE '%nextval(%')) OR (is_identity <> 'NO') AS "database-is-auto-increment"
FROM information_schema.columns AS c
LEFT JOIN (
  SELECT tc.table_schema, tc.table_name, kc.column_name
  FROM information_schema.table_constraints AS tc
  INNER JOIN information_schema.key_column_usage AS kc
    ON (tc.constraint_name = kc.constraint_name) AND (tc.table_schema = kc.table_schema) AND (tc.table_name = kc.table_name)
  WHERE tc.constraint_type = 'PRIMARY KEY'
) AS pk ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND (c.table_schema IN ('public'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC

--- metabase privileges
with table_privileges as (
  select
    NULL as role,
    t.schemaname as schema,
    t.objectname as table,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update,
    pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'select') as select,
    pg_catalog.has_table_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_views
    union
    select schemaname, matviewname as objectname from pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
    and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
select t.* from table_privileges t order by t.table

--- dbeaver databases
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR db.datname ='dev' ORDER BY db.datname

--- dbeaver schemas
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
 ORDER BY nspname

--- dbeaver data types
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL
AND (c.relkind IS NULL OR c.relkind = 'c')

--- dbeaver tables
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'public') AND c.relkind not in ('i','I','c')

--- dbeaver columns
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.oid={ships}
ORDER BY a.attnum

--- dbeaver constraints
SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, case when c.contype='c' then substring(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid={ships}
ORDER BY c.oid

--- dbeaver indexes
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE i.indrelid={ships} ORDER BY tabrelname, c.relname

--- dbeaver settings
select * from pg_catalog.pg_settings where name='standard_conforming_strings'

--- dbeaver roles
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a
left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid
ORDER BY a.rolname

--- size of each relation
SELECT n.nspname || '.' || c.relname AS relation, pg_size_pretty(pg_total_relation_size(c.oid)) AS total_size
FROM pg_class c LEFT JOIN pg_namespace n ON (n.oid = c.relnamespace)
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'rw_catalog') AND c.relkind <> 'i'
ORDER BY pg_total_relation_size(c.oid) DESC, 1
LIMIT 20

--- primary key columns
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS data_type
FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
WHERE i.indrelid = 'ships'::regclass AND i.indisprimary

--- asyncpg type introspection
WITH RECURSIVE typeinfo_tree(oid, ns, name, kind, basetype, elemtype, elemdelim, depth) AS (
    SELECT t.oid, ns.nspname, t.typname, t.typtype,
        CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE NULL END,
        t.typelem, t.typdelim, 0
    FROM pg_catalog.pg_type AS t
    INNER JOIN pg_catalog.pg_namespace ns ON ns.oid = t.typnamespace
    WHERE t.oid = any('{23,1007}'::oid[])
    UNION ALL
    SELECT t.oid, ns.nspname, t.typname, t.typtype, NULL, t.typelem, t.typdelim, tt.depth + 1
    FROM pg_catalog.pg_type AS t
    INNER JOIN pg_catalog.pg_namespace ns ON ns.oid = t.typnamespace, typeinfo_tree tt
    WHERE tt.elemtype IS NOT NULL AND t.oid = tt.elemtype AND tt.depth < 5
)
SELECT DISTINCT oid, ns, name, kind, elemtype FROM typeinfo_tree ORDER BY oid

--- psql \d of a server before 14: extended statistics
SELECT oid, stxrelid::pg_catalog.regclass, stxnamespace::pg_catalog.regnamespace AS nsp, stxname,
  (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(attname),', ')
   FROM pg_catalog.unnest(stxkeys) s(attnum)
   JOIN pg_catalog.pg_attribute a ON (stxrelid = a.attrelid AND
        a.attnum = s.attnum AND NOT attisdropped)) AS columns,
  'd' = any(stxkind) AS ndist_enabled,
  'f' = any(stxkind) AS deps_enabled,
  'm' = any(stxkind) AS mcv_enabled,
  stxstattarget
FROM pg_catalog.pg_statistic_ext stat
WHERE stxrelid = '{ships}'
ORDER BY 1

--- psql \d of a server before 15: publications
SELECT pubname
FROM pg_catalog.pg_publication p
JOIN pg_catalog.pg_publication_rel pr ON p.oid = pr.prpubid
WHERE pr.prrelid = '{ships}'
UNION ALL
SELECT pubname
FROM pg_catalog.pg_publication p
WHERE p.puballtables AND pg_catalog.pg_relation_is_publishable('{ships}')
ORDER BY 1

--- psql \l of a server before 15
SELECT d.datname as "Name",
       pg_catalog.pg_get_userbyid(d.datdba) as "Owner",
       pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding",
       d.datcollate as "Collate",
       d.datctype as "Ctype",
       NULL as "ICU Locale",
       'libc' AS "Locale Provider",
       pg_catalog.array_to_string(d.datacl, E'\n') AS "Access privileges"
FROM pg_catalog.pg_database d
ORDER BY 1
