-- The tiles of a slide that a rectangle in micrometres touches, row by row. Background has no tiles.
-- No tile is decoded: iac_image(record) does that, and WsiImageReader.read_region the rectangle.
--   SET VARIABLE pack = 'slide.iac';
--   SET VARIABLE x_um = 1000; SET VARIABLE y_um = 2000;
--   SET VARIABLE width_um = 500; SET VARIABLE height_um = 500;
SELECT x, y, x_um, y_um, valid_width, valid_height, record.row
FROM iac_scan(getvariable('pack'), layout := true)
WHERE kind = 0
  AND x_um < getvariable('x_um') + getvariable('width_um')
  AND y_um < getvariable('y_um') + getvariable('height_um')
  AND x_um + valid_width * mpp_x > getvariable('x_um')
  AND y_um + valid_height * mpp_y > getvariable('y_um')
ORDER BY y, x;
