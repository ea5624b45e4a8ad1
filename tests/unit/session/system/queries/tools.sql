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

--- dbeaver database sizes
SELECT db.datname, pg_database_size(db.oid) FROM pg_catalog.pg_database db WHERE db.datname = 'dev'

--- dbeaver the comment of a database
SELECT description FROM pg_shdescription JOIN pg_database ON objoid = pg_database.oid WHERE datname = 'dev'

--- dbeaver the comment of a relation
SELECT description FROM pg_catalog.pg_description
JOIN pg_catalog.pg_class ON pg_description.objoid = pg_class.oid
JOIN pg_catalog.pg_namespace ON pg_class.relnamespace = pg_namespace.oid
WHERE pg_class.relname = 'ships' AND pg_namespace.nspname = 'public'

--- dbeaver probes for a column
SELECT typcategory FROM pg_catalog.pg_type WHERE 1<>1 LIMIT 1

--- dbeaver probes for another column
SELECT rolreplication FROM pg_catalog.pg_roles WHERE 1<>1 LIMIT 1

--- dbeaver labels of an enum
SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = 23 ORDER BY e.enumsortorder

--- dbeaver constraints of a domain
SELECT concat(c.conname, ' ', pg_catalog.pg_get_constraintdef(oid, true)) FROM pg_catalog.pg_constraint c WHERE contypid = 23

--- dbeaver types of a schema
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
AND t.typnamespace = 11

--- dbeaver attributes of a type
SELECT c.relname, row_number() OVER (ORDER BY a.attnum) AS attnum, a.*,
  pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (a.attrelid = dsc.objoid AND a.attnum = dsc.objsubid)
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.oid = {ships}
ORDER BY a.attnum

--- dbeaver access methods
SELECT am.oid, am.* FROM pg_catalog.pg_am am ORDER BY am.oid

--- dbeaver operator classes
SELECT oc.oid, oc.* FROM pg_catalog.pg_opclass oc ORDER BY oc.oid

--- dbeaver operator families
SELECT of.oid, of.* FROM pg_catalog.pg_opfamily of ORDER BY of.oid

--- dbeaver encodings
SELECT c.contoencoding AS encid, pg_catalog.pg_encoding_to_char(c.contoencoding) AS encname
FROM pg_catalog.pg_conversion c GROUP BY c.contoencoding ORDER BY 2

--- dbeaver collations
SELECT c.oid, c.* FROM pg_catalog.pg_collation c ORDER BY c.oid

--- dbeaver languages
SELECT l.oid, l.* FROM pg_catalog.pg_language l ORDER BY l.oid

--- dbeaver foreign data wrappers
SELECT l.oid, l.*, p.pronamespace AS handler_schema_id FROM pg_catalog.pg_foreign_data_wrapper l
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = l.fdwhandler ORDER BY l.fdwname

--- dbeaver foreign servers
SELECT l.oid, l.* FROM pg_catalog.pg_foreign_server l ORDER BY l.srvname

--- dbeaver user mappings
SELECT DISTINCT srvname, CASE WHEN rolname IS NULL THEN 'public' ELSE rolname END rolname, srvoptions, umoptions
FROM pg_user_mapping um JOIN pg_foreign_server fs ON um.umserver = fs.OID
LEFT JOIN pg_authid pa ON um.umuser = pa.OID WHERE fs.OID = 1 ORDER BY srvname

--- dbeaver foreign tables
SELECT * FROM pg_catalog.pg_foreign_table WHERE ftrelid = {ships}

--- dbeaver tablespaces
SELECT t.oid, t.*, pg_tablespace_location(t.oid) loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid

--- dbeaver available extensions
SELECT name, default_version, installed_version, comment FROM pg_catalog.pg_available_extensions ORDER BY name

--- dbeaver event triggers
SELECT pet.*, d.description FROM pg_catalog.pg_event_trigger pet
LEFT OUTER JOIN pg_catalog.pg_description d ON pet."oid" = d.objoid

--- dbeaver extensions
SELECT e.oid, cfg.tbls, n.nspname AS schema_name, e.*
FROM pg_catalog.pg_extension e
JOIN pg_namespace n ON n.oid = e.extnamespace
LEFT JOIN (
  SELECT ARRAY_AGG(ns.nspname || '.' || cls.relname) tbls, oid_ext
  FROM (SELECT unnest(e1.extconfig) oid, e1.oid oid_ext FROM pg_catalog.pg_extension e1) c
  JOIN pg_class cls ON cls.oid = c.oid
  JOIN pg_namespace ns ON ns.oid = cls.relnamespace
  GROUP BY oid_ext
) cfg ON cfg.oid_ext = e.oid
ORDER BY e.oid

--- dbeaver enums
SELECT * FROM pg_catalog.pg_enum

--- dbeaver dependents
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname, pg_get_expr(ad.adbin, ad.adrelid) adefval,
  CASE WHEN cl.relkind IS NOT NULL THEN cl.relkind::text || COALESCE(dep.objsubid::text, '')::text
    WHEN tg.oid IS NOT NULL THEN 'T'::text
    WHEN ty.oid IS NOT NULL THEN 'y'::text
    WHEN ns.oid IS NOT NULL THEN 'n'::text
    WHEN pr.oid IS NOT NULL THEN 'p'::text
    WHEN la.oid IS NOT NULL THEN 'l'::text
    WHEN rw.oid IS NOT NULL THEN 'R'::text
    WHEN co.oid IS NOT NULL THEN 'C'::text || contype::text
    WHEN ad.oid IS NOT NULL THEN 'A'::text
    ELSE ''
  END AS type,
  COALESCE(coc.relname, clrw.relname, tgr.relname) AS ownertable,
  CASE WHEN cl.relname IS NOT NULL AND att.attname IS NOT NULL THEN cl.relname || '.' || att.attname
    ELSE COALESCE(cl.relname, co.conname, pr.proname, tg.tgname, ty.typname, la.lanname, rw.rulename, ns.nspname)
  END AS refname,
  COALESCE(nsc.nspname, nso.nspname, nsp.nspname, nst.nspname, nsrw.nspname, tgrn.nspname) AS nspname
FROM pg_depend dep
LEFT JOIN pg_class cl ON dep.objid = cl.oid
LEFT JOIN pg_attribute att ON dep.objid = att.attrelid AND dep.objsubid = att.attnum
LEFT JOIN pg_namespace nsc ON cl.relnamespace = nsc.oid
LEFT JOIN pg_proc pr ON dep.objid = pr.oid
LEFT JOIN pg_namespace nsp ON pr.pronamespace = nsp.oid
LEFT JOIN pg_trigger tg ON dep.objid = tg.oid
LEFT JOIN pg_class tgr ON tg.tgrelid = tgr.oid
LEFT JOIN pg_namespace tgrn ON tgr.relnamespace = tgrn.oid
LEFT JOIN pg_type ty ON dep.objid = ty.oid
LEFT JOIN pg_namespace nst ON ty.typnamespace = nst.oid
LEFT JOIN pg_constraint co ON dep.objid = co.oid
LEFT JOIN pg_class coc ON co.conrelid = coc.oid
LEFT JOIN pg_namespace nso ON co.connamespace = nso.oid
LEFT JOIN pg_rewrite rw ON dep.objid = rw.oid
LEFT JOIN pg_class clrw ON clrw.oid = rw.ev_class
LEFT JOIN pg_namespace nsrw ON clrw.relnamespace = nsrw.oid
LEFT JOIN pg_language la ON dep.objid = la.oid
LEFT JOIN pg_namespace ns ON dep.objid = ns.oid
LEFT JOIN pg_attrdef ad ON ad.oid = dep.objid
LEFT JOIN pg_attribute attr ON attr.attrelid = ad.adrelid AND attr.attnum = ad.adnum
WHERE dep.refobjid = {ships}
ORDER BY type

--- dbeaver schema of a session
SELECT current_schema(), session_user

--- dbeaver a name in its schema
SELECT oid, relkind, reltype FROM pg_catalog.pg_class WHERE relnamespace = 'public'::regnamespace AND relname = 'ships'
UNION ALL
SELECT oid, 'c', oid FROM pg_catalog.pg_type WHERE typnamespace = 'public'::regnamespace AND typname = 'ships'

--- dbeaver members of a role
SELECT * FROM pg_catalog.pg_auth_members WHERE roleid = 1

--- dbeaver table privileges of a role
SELECT * FROM information_schema.table_privileges WHERE table_catalog = 'dev' AND grantee = 'root'

--- dbeaver routine privileges of a role
SELECT * FROM information_schema.routine_privileges WHERE specific_catalog = 'dev' AND grantee = 'root'

--- dbeaver other privileges of a role
SELECT * FROM (
  SELECT DISTINCT relnamespace, relacl, relname, relkind, (aclexplode(relacl)).grantee AS granteeI
  FROM pg_class
  WHERE relacl IS NOT NULL AND relnamespace IN (
    SELECT oid FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname != 'information_schema')
  UNION ALL
  SELECT DISTINCT n.oid AS relnamespace, nspacl AS relacl, n.nspname AS relname, cast('C' AS "char") AS relkind,
    (aclexplode(nspacl)).grantee AS granteeI
  FROM pg_catalog.pg_namespace n
  WHERE n.nspacl IS NOT NULL
) AS tr
WHERE tr.granteeI = 1 AND tr.relkind IN ('S', 'm', 'C')

--- dbeaver inheritance
SELECT i.inhrelid relid, pc.relnamespace parent_ns, pc.oid parent_oid, i.inhseqno
FROM pg_catalog.pg_inherits i, pg_class rc, pg_class pc
WHERE rc.oid = i.inhrelid AND rc.relnamespace = 'public'::regnamespace AND pc.oid = i.inhparent

--- dbeaver sizes
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace

--- dbeaver default privileges
SELECT * FROM pg_default_acl WHERE defaclnamespace = 'public'::regnamespace

--- dbeaver aggregates
SELECT p.oid AS proc_oid, p.proname AS proc_name, a.* FROM pg_catalog.pg_aggregate a, pg_catalog.pg_proc p
WHERE p.oid = a.aggfnoid AND p.pronamespace = 'public'::regnamespace ORDER BY p.proname

--- dbeaver procedures
SELECT p.oid AS poid, p.*, pg_catalog.pg_get_expr(p.proargdefaults, 0) AS arg_defaults, d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = p.oid AND d.classoid = 'pg_proc'::regclass AND d.objsubid = 0
WHERE p.pronamespace = 'public'::regnamespace ORDER BY p.proname

--- dbeaver sequences
SELECT * FROM pg_catalog.pg_sequences WHERE schemaname = 'public' AND sequencename = 'berths'

--- dbeaver policies
SELECT * FROM pg_catalog.pg_policies WHERE schemaname = 'public' AND tablename = 'ships'

--- dbeaver schemas that refer to a table
SELECT DISTINCT connamespace FROM pg_catalog.pg_constraint WHERE confrelid = {ships}

--- dbeaver tables that inherit
SELECT i.*, c.relnamespace FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c
WHERE i.inhrelid = {ships} AND c.oid = i.inhparent ORDER BY i.inhseqno

--- dbeaver range of a partition
SELECT pg_get_expr(c.relpartbound, c.oid, true) AS partition_range FROM "pg_catalog".pg_class c
WHERE relname = 'ships' AND relnamespace = 'public'::regnamespace

--- dbeaver triggers
SELECT x.oid, x.*, p.pronamespace AS func_schema_id, d.description
FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = x.tgfoid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = x.oid AND d.objsubid = 0
WHERE x.tgrelid = {ships} AND NOT x.tgisinternal

--- dbeaver rules
SELECT r.oid, r.*, pg_get_ruledef(r.oid) AS definition FROM pg_rewrite r
WHERE r.ev_class = {ships} AND r.rulename <> '_RETURN'::name

--- dbeaver size of a table
SELECT pg_catalog.pg_total_relation_size({ships}) AS total_rel_size, pg_catalog.pg_relation_size({ships}) AS rel_size

--- dbeaver definition of an index
SELECT pg_catalog.pg_get_indexdef({by_ship})

--- dbeaver definition of a column of an index
SELECT pg_catalog.pg_get_indexdef({by_ship}, 1, true)

--- dbeaver definition of a view
SELECT pg_get_viewdef({norwegian}, true)

--- dbeaver definition of a trigger
SELECT pg_catalog.pg_get_triggerdef(1)

--- dbeaver definition of a constraint
SELECT pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint WHERE conrelid = {ships}

--- dbeaver definition of a function
SELECT pg_get_functiondef(1)

--- dbeaver search of relations
SELECT pc.oid, pc.relname, pc.relnamespace, pc.relkind FROM pg_catalog.pg_class pc
WHERE pc.relkind IN ('r','v','m','f','p') AND (pc.relname ILIKE '%ship%' OR obj_description(pc.oid, 'pg_class') ILIKE '%ship%'
  OR (pc.relkind = 'v' AND pg_get_viewdef(pc."oid") ILIKE '%ship%'))
AND pc.relnamespace IN ('public'::regnamespace) ORDER BY pc.relname LIMIT 10

--- dbeaver search of functions
SELECT pp.oid AS poid, pp.* FROM pg_catalog.pg_proc pp
WHERE (pp.proname ILIKE '%a%' OR obj_description(pp.oid, 'pg_proc') ILIKE '%a%'
  OR (pp.prokind <> 'm' AND pp.prokind <> 'a' AND pg_get_functiondef(pp."oid") ILIKE '%a%'))
ORDER BY pp.proname LIMIT 10

--- dbeaver search of constraints
SELECT pc.oid, pc.conname, pc.connamespace FROM pg_catalog.pg_constraint pc
WHERE (pc.conname ILIKE '%a%' OR obj_description(pc.oid, 'pg_constraint') ILIKE '%a%' OR (pg_get_constraintdef(pc."oid") ILIKE '%a%'))
ORDER BY pc.conname LIMIT 10

--- dbeaver search of columns
SELECT x.attname, x.attrelid, x.atttypid, c.relnamespace FROM pg_catalog.pg_attribute x, pg_catalog.pg_class c
WHERE c.oid = x.attrelid AND (x.attname LIKE '%a%' OR col_description(c.oid, x.attnum) LIKE '%a%')
AND c.relnamespace IN ('public'::regnamespace) ORDER BY x.attname LIMIT 10

--- dbeaver sessions
SELECT sa.* FROM pg_catalog.pg_stat_activity sa

--- dbeaver locks of a session
SELECT coalesce(db.datname, '') AS datname, coalesce(lock.locktype, '') AS locktype,
  coalesce(lock.relation::regclass::varchar, '') AS relation, coalesce(lock.mode, '') AS mode,
  coalesce(lock.transactionid::varchar, '') AS tid, lock.page AS page, lock.tuple AS tuple, lock.pid AS pid, lock.granted
FROM pg_catalog.pg_locks lock LEFT JOIN pg_catalog.pg_database db ON db.oid = lock.database
WHERE lock.pid = 1

--- dbeaver who blocks whom
WITH locks AS (SELECT pid, locktype, mode, granted, transactionid tid, relation, page, tuple FROM pg_locks),
conflict AS (SELECT * FROM (VALUES ('AccessShareLock', 'AccessExclusiveLock', 1), ('RowShareLock', 'ExclusiveLock', 1))
  AS t (mode1, mode2, prt)),
real_locks AS (
  SELECT la.pid AS blocked_pid, blocked_activity.usename AS blocked_user, la.blocked AS blocking_pid,
    blocking_activity.usename AS blocking_user, blocked_activity.query AS blocked_statement, blocking_activity.query AS statement_in
  FROM (
    SELECT l.*, c.mode2, c.prt, l2.pid blocked, row_number() OVER (PARTITION BY l.pid ORDER BY c.prt) rid
    FROM locks l
    JOIN conflict c ON l.mode = c.mode1
    JOIN locks l2 ON l2.locktype = l.locktype AND l2.mode = c.mode2 AND l2.granted AND l.pid != l2.pid AND
      coalesce(l.tid::text, '*') || ':' || coalesce(l.relation::text, '*') || ':' || coalesce(l.page::text, '*') =
      coalesce(l2.tid::text, '*') || ':' || coalesce(l2.relation::text, '*') || ':' || coalesce(l2.page::text, '*')
    WHERE NOT l.granted
  ) la
  JOIN pg_catalog.pg_stat_activity blocked_activity ON blocked_activity.pid = la.pid
  JOIN pg_catalog.pg_stat_activity blocking_activity ON blocking_activity.pid = la.blocked
  WHERE la.rid = 1),
root_quest AS (SELECT blocking_pid AS blocking_pid FROM real_locks EXCEPT SELECT blocked_pid FROM real_locks)
SELECT blocked_pid, blocked_user, blocking_pid, blocking_user, blocked_statement, statement_in FROM real_locks
UNION
SELECT real_locks.blocking_pid, real_locks.blocking_user, null::integer, null::text, real_locks.statement_in, null::text
FROM real_locks, root_quest WHERE real_locks.blocking_pid = root_quest.blocking_pid

--- dbeaver triggers of the standard
SELECT trigger_name, event_object_table AS OWNER, event_manipulation, action_order, action_condition, action_statement,
  action_orientation, action_timing
FROM INFORMATION_SCHEMA.TRIGGERS WHERE trigger_schema = 'public'

--- dbeaver sequences of the standard
SELECT sequence_name FROM information_schema.sequences WHERE sequence_schema = 'public'

--- dbeaver does a schema exist
SELECT 1 FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = 'public'

--- dbeaver source of a view
SELECT definition FROM PG_CATALOG.PG_VIEWS WHERE SchemaName = 'public' AND ViewName = 'norwegian'

--- dbeaver types with their schemas
SELECT t.oid AS typid, tn.nspname typnsname, t.* FROM pg_catalog.pg_type t, pg_catalog.pg_namespace tn
WHERE tn.oid = t.typnamespace AND t.typtype <> 'c' AND t.typcategory <> 'A' ORDER BY t.oid

--- metabase enum types
SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)

--- metabase tables
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name",
  CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE'
    WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type",
  "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count"
FROM "pg_catalog"."pg_class" AS "c"
INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
LEFT JOIN "pg_catalog"."pg_description" AS "d"
  ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass)
LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname")
WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
  AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public'))
ORDER BY "type" ASC, "schema" ASC, "name" ASC

--- metabase fields of tables and materialized views
SELECT * FROM (
SELECT c.column_name AS name, FORMAT('%s', c.udt_name) AS "database-type", c.ordinal_position - 1 AS "database-position",
  c.table_schema AS "table-schema", c.table_name AS "table-name", FALSE AS "pk?", NULL AS "field-comment"
FROM information_schema.columns AS c
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND (c.table_schema IN ('public'))
) x
UNION ALL
SELECT "pa"."attname" AS "name",
  CASE WHEN "ptn"."nspname" IN ('public', 'pg_catalog') THEN FORMAT('%s', "pt"."typname")
    ELSE FORMAT('"%s"."%s"', "ptn"."nspname", "pt"."typname") END AS "database-type",
  "pa"."attnum" - 1 AS "database-position", "pn"."nspname" AS "table-schema", "pc"."relname" AS "table-name",
  FALSE AS "pk?", NULL AS "field-comment"
FROM "pg_catalog"."pg_class" AS "pc"
INNER JOIN "pg_catalog"."pg_namespace" AS "pn" ON "pn"."oid" = "pc"."relnamespace"
INNER JOIN "pg_catalog"."pg_attribute" AS "pa" ON "pa"."attrelid" = "pc"."oid"
INNER JOIN "pg_catalog"."pg_type" AS "pt" ON "pt"."oid" = "pa"."atttypid"
INNER JOIN "pg_catalog"."pg_namespace" AS "ptn" ON "ptn"."oid" = "pt"."typnamespace"
WHERE ("pc"."relkind" = 'm') AND ("pa"."attnum" >= 1) AND ("pn"."nspname" IN ('public'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC

--- metabase foreign keys
SELECT "fk_ns"."nspname" AS "fk-table-schema", "fk_table"."relname" AS "fk-table-name", "fk_column"."attname" AS "fk-column-name",
  "pk_ns"."nspname" AS "pk-table-schema", "pk_table"."relname" AS "pk-table-name", "pk_column"."attname" AS "pk-column-name"
FROM "pg_constraint" AS "c"
INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid"
INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid"
INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid"
INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid"
INNER JOIN "pg_namespace" AS "pk_ns" ON "pk_table"."relnamespace" = "pk_ns"."oid"
INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid"
WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char)
  AND ("fk_column"."attnum" = ANY(c.conkey)) AND ("pk_column"."attnum" = ANY(c.confkey)) AND ("fk_ns"."nspname" IN ('public'))
ORDER BY "fk-table-schema" ASC, "fk-table-name" ASC

--- metabase indexes
SELECT "tmp"."table-schema", "tmp"."table-name", TRIM(BOTH '"' FROM PG_CATALOG.PG_GET_INDEXDEF("tmp"."ci_oid", "tmp"."pos", FALSE)) AS "field-name"
FROM (
  SELECT "n"."nspname" AS "table-schema", "ct"."relname" AS "table-name", "ci"."oid" AS "ci_oid",
    (INFORMATION_SCHEMA._PG_EXPANDARRAY("i"."indkey")).n AS "pos"
  FROM "pg_catalog"."pg_class" AS "ct"
  INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "ct"."relnamespace" = "n"."oid"
  INNER JOIN "pg_catalog"."pg_index" AS "i" ON "ct"."oid" = "i"."indrelid"
  INNER JOIN "pg_catalog"."pg_class" AS "ci" ON "ci"."oid" = "i"."indexrelid"
  WHERE (PG_CATALOG.PG_GET_EXPR("i"."indpred", "i"."indrelid") IS NULL)
    AND n.nspname !~ '^information_schema|catalog_history|pg_' AND ("n"."nspname" IN ('public'))
) AS "tmp"
WHERE "tmp"."pos" = 1

--- metabase privileges of a table
SELECT has_table_privilege('"public"."ships"', 'SELECT'), has_any_column_privilege('"public"."ships"', 'UPDATE')

--- metabase version
SELECT current_setting('server_version_num'), version()
