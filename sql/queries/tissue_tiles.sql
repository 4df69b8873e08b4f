-- The tiles of a slide that are mostly tissue, by a table grid that WsiImageReader.grid made of it
-- (con.register('grid', reader.grid(tile_size=64, mpp=4))): the mean of the places under a tile,
-- weighted by how much of it each covers. No tile is decoded.
--   SET VARIABLE pack = 'slide.iac';
SELECT t.tile_x, t.tile_y, t.x, t.y, t.record.row AS "row",
       round(sum(g.tissue * overlap_x * overlap_y) / sum(overlap_x * overlap_y), 4) AS tissue
FROM iac_scan(getvariable('pack'), layout := true) AS t, grid AS g,
     LATERAL (SELECT least(t.x_um + t.valid_width * t.mpp_x, g.x_um + g.size * g.mpp)
                     - greatest(t.x_um, g.x_um) AS overlap_x,
                     least(t.y_um + t.valid_height * t.mpp_y, g.y_um + g.size * g.mpp)
                     - greatest(t.y_um, g.y_um) AS overlap_y)
WHERE t.kind = 0 AND overlap_x > 0 AND overlap_y > 0
GROUP BY ALL
HAVING tissue >= 0.5
ORDER BY t.tile_y, t.tile_x;
