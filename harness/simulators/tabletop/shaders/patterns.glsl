// Patterns computed from a position in metres: no texture files, no stretching over a scaled box.
// Integer hashes, because sin() differs between drivers.

const int PLAIN = 0, WOOD = 1, TILES = 2, STONE = 3, CLOTH = 4, PLANKS = 5;

float lattice(ivec3 cell) {
  uint h = uint(cell.x) * 0x8da6b343u ^ uint(cell.y) * 0xd8163841u ^ uint(cell.z) * 0xcb1ab31fu;
  h = (h ^ (h >> 13)) * 0x5bd1e995u;
  h ^= h >> 15;
  return float(h & 0xffffu) / 65535.0;
}

// Smooth noise in [0, 1] with features of about one unit.
float noise(vec3 p) {
  ivec3 cell = ivec3(floor(p));
  vec3 t = fract(p);
  t = t * t * (3.0 - 2.0 * t);
  vec4 near = vec4(lattice(cell), lattice(cell + ivec3(1, 0, 0)),
                   lattice(cell + ivec3(0, 1, 0)), lattice(cell + ivec3(1, 1, 0)));
  vec4 far = vec4(lattice(cell + ivec3(0, 0, 1)), lattice(cell + ivec3(1, 0, 1)),
                  lattice(cell + ivec3(0, 1, 1)), lattice(cell + ivec3(1, 1, 1)));
  vec4 level = mix(near, far, t.z);
  vec2 line = mix(level.xy, level.zw, t.y);
  return mix(line.x, line.y, t.x);
}

// Puts the longest side of the object along x: wood grows along it.
vec3 grainFrame(vec3 p, vec3 size) {
  if (size.y > size.x && size.y >= size.z) return p.yxz;
  if (size.z > size.x && size.z > size.y) return p.zxy;
  return p;
}

float wood(vec3 p) {
  float ring = noise(vec3(p.x * 1.3, p.y * 9.0, p.z * 9.0)) * 7.0;
  float band = abs(fract(ring) - 0.5) * 2.0;
  float fibre = noise(vec3(p.x * 6.0, p.y * 160.0, p.z * 160.0));
  return 0.80 + 0.16 * band + 0.10 * fibre;
}

// A line of the given half width at every whole number, as wide as a pixel at least so that
// far tiles fade instead of flickering.
float seam(float x, float halfWidth, float pixel) {
  float d = abs(fract(x - 0.5) - 0.5);
  float line = 1.0 - smoothstep(halfWidth, halfWidth + pixel, d);
  return line * clamp(4.0 * halfWidth / (pixel + halfWidth), 0.0, 1.0);
}

// The factor on the base colour. `normal` picks the plane that tiles lie in.
float pattern(int kind, vec3 p, vec3 size, vec3 normal) {
  if (kind == WOOD) return wood(grainFrame(p, size));
  if (kind == STONE) return 0.84 + 0.20 * noise(p * 14.0) + 0.12 * noise(p * 90.0);
  if (kind == CLOTH) return 0.90 + 0.16 * noise(p * 400.0);
  if (kind == PLAIN) return 1.0;

  vec3 a = abs(normal);
  vec2 q = a.z > 0.5 ? p.xy : (a.x > a.y ? p.yz : p.xz);
  vec2 pitch = kind == TILES ? vec2(0.15) : vec2(1.4, 0.14);
  vec2 cell = q / pitch;
  if (kind == PLANKS) cell.x += 0.37 * floor(cell.y);
  vec2 pixel = fwidth(q / pitch);
  float gap = max(seam(cell.x, 0.004 / pitch.x, pixel.x), seam(cell.y, 0.004 / pitch.y, pixel.y));
  float tone = 0.92 + 0.12 * lattice(ivec3(floor(cell), 7));
  if (kind == PLANKS) tone *= wood(vec3(q, floor(cell.y)));
  return tone * (1.0 - 0.35 * gap);
}
