-- The three tiles that look most like one tile, by the features of another pack: vectors are
-- compared there, and the nearest are found among the tiles by tile_id. No tile is decoded:
-- iac_image(record) does that, or TilePackageReader.read_batch of the rows.
--   SET VARIABLE features = 'features.iac'; SET VARIABLE tiles = 'tiles.iac';
--   SET VARIABLE tile = 'tile-7';
WITH query AS MATERIALIZED (
    SELECT tile_id, iac_vector_double(record) AS wanted
    FROM (SELECT tile_id, record FROM iac_scan(getvariable('features'))
          WHERE tile_id = getvariable('tile') LIMIT 1)),
nearest AS MATERIALIZED (
    SELECT f.tile_id, iac_similarity(iac_vector_double(f.record), query.wanted) AS similarity
    FROM iac_scan(getvariable('features')) AS f, query
    WHERE f.tile_id <> query.tile_id
    ORDER BY similarity DESC NULLS LAST, f.tile_id
    LIMIT 3)
SELECT tile_id, patient_id, slide_id, round(similarity, 4) AS similarity, record.row
FROM nearest JOIN iac_scan(getvariable('tiles')) USING (tile_id)
ORDER BY nearest.similarity DESC NULLS LAST, tile_id;
