#version 450
// World position and normal for the lighting; the position in the object's own frame, in metres,
// for the patterns, which so move with the object.

#include "scene.glsl"

layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec2 uv;
layout(location = 3) in vec3 tangent;
layout(location = 4) in vec3 bitangent;

layout(location = 0) out vec3 outWorld;
layout(location = 1) out vec3 outNormal;
layout(location = 2) out vec3 outLocal;
layout(location = 3) out flat vec3 outSize;

void main() {
  mat3 model = mat3(objectTransformBuffer.modelMatrix);
  vec3 squares = vec3(dot(model[0], model[0]), dot(model[1], model[1]), dot(model[2], model[2]));
  outSize = sqrt(squares);
  outLocal = position * outSize;
  // A primitive is a unit shape, scaled along its own axes: dividing twice inverts that scale.
  outNormal = model * (normal / squares);
  vec4 world = objectTransformBuffer.modelMatrix * vec4(position, 1);
  outWorld = world.xyz;
  gl_Position = cameraBuffer.projectionMatrix * (cameraBuffer.viewMatrix * world);
}
