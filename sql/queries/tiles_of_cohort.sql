-- The tiles of the patients in a table cohort, which any query that gives patient_id can make,
-- slide by slide and row by row as they lie on it. No tile is decoded: iac_image(record) does
-- that, or TilePackageReader.read_batch of the rows.
--   SET VARIABLE tiles = 'tiles.iac';
--   CREATE TEMP TABLE cohort AS SELECT patient_id FROM ... WHERE ...;
SELECT patient_id, slide_id, tile_id, tile_x, tile_y, record.row
FROM iac_scan(getvariable('tiles'))
WHERE patient_id IN (SELECT patient_id FROM cohort)
ORDER BY slide_id, tile_y, tile_x;
