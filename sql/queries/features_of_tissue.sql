-- The vectors of a slide's tiles that are mostly tissue: those of a features pack, whose tiles lie
-- where a table grid has them (WsiImageReader.grid of the same tile_size and mpp, without overlap).
-- None is read: iac_vector(record) does that, or FeatureCacheReader.read_matrix of the rows.
--   SET VARIABLE features = 'features.iac'; SET VARIABLE slide = 'slide-1';
SELECT f.tile_id, g.x_um, g.y_um, g.tissue, f.record.row AS "row"
FROM iac_scan(getvariable('features')) AS f
JOIN grid AS g ON f.tile_x = g."column" AND f.tile_y = g."row"
WHERE f.slide_id = getvariable('slide') AND g.tissue >= 0.5
ORDER BY f.tile_y, f.tile_x;
