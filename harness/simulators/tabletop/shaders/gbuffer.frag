#version 450
// One forward pass: pattern, key light with a soft shadow (directional light 0), fill lights, and
// an analytic room to reflect, because an image of one and its look-up table would cost seconds in
// every process. Names of uniforms that are missing here are missing on purpose: to declare the
// renderer's environment or its BRDF table makes it compute them.

#include "scene.glsl"
#include "patterns.glsl"

layout(constant_id = 0) const int NUM_DIRECTIONAL_LIGHTS = 3;

layout(set = 2, binding = 0) uniform MaterialBuffer {
  vec4 emission;
  vec4 baseColor;
  float fresnel;
  float roughness;
  float metallic;
  float transmission;
  float ior;
  float transmissionRoughness;
  int textureMask;
  int padding1;
  vec4 textureTransforms[6];
} materialBuffer;

layout(set = 2, binding = 1) uniform sampler2D colorTexture;
layout(set = 2, binding = 2) uniform sampler2D roughnessTexture;
layout(set = 2, binding = 3) uniform sampler2D normalTexture;
layout(set = 2, binding = 4) uniform sampler2D metallicTexture;
layout(set = 2, binding = 5) uniform sampler2D emissionTexture;
layout(set = 2, binding = 6) uniform sampler2D transmissionTexture;

layout(set = 3, binding = 0) uniform SceneBuffer {
  vec4 ambientLight;
  DirectionalLight directionalLights[3];
  SpotLight spotLights[10];
  PointLight pointLights[10];
  SpotLight texturedLights[1];
} sceneBuffer;

layout(set = 3, binding = 1) uniform ShadowBuffer {
  LightCamera directionalLightBuffers[1];
  LightCamera spotLightBuffers[10];
  LightCamera pointLightBuffers[18];
  LightCamera texturedLightBuffers[1];
} shadowBuffer;

layout(set = 3, binding = 2) uniform samplerCube samplerPointLightDepths[3];
layout(set = 3, binding = 3) uniform sampler2D samplerDirectionalLightDepths[1];
layout(set = 3, binding = 4) uniform sampler2D samplerTexturedLightDepths[1];
layout(set = 3, binding = 5) uniform sampler2D samplerSpotLightDepths[10];
layout(set = 3, binding = 6) uniform sampler2D samplerTexturedLightTextures[1];

layout(location = 0) in vec3 world;
layout(location = 1) in vec3 inNormal;
layout(location = 2) in vec3 local;
layout(location = 3) in flat vec3 size;

layout(location = 0) out vec4 outColor;

// Fraction of the key light that arrives: a tent over 4x4 texels, four gathers.
float keyVisibility(vec3 normal, vec3 toLight) {
  LightCamera light = shadowBuffer.directionalLightBuffers[0];
  float resolution = float(light.width);
  float texel = 2.0 / (light.projectionMatrix[0][0] * resolution);
  // Moved off the surface by as much as the filter reaches across it: no acne, and a contact
  // shadow that still begins at the contact.
  float slope = clamp(1.0 - dot(normal, toLight), 0.0, 1.0);
  vec3 lifted = world + normal * texel * (0.6 + 2.2 * slope) + toLight * texel * 0.5;
  vec4 clip = light.projectionMatrix * (light.viewMatrix * vec4(lifted, 1));
  vec2 uv = clip.xy * 0.5 + 0.5;
  if (any(lessThan(uv, vec2(0.01))) || any(greaterThan(uv, vec2(0.99))) || clip.z > 1.0) return 1.0;

  vec2 f = fract(uv * resolution - 0.5);
  float sum = 0.0;
  for (int j = -1; j <= 1; j += 2) {
    for (int i = -1; i <= 1; i += 2) {
      vec4 lit = step(vec4(clip.z), textureGather(samplerDirectionalLightDepths[0],
                                                  uv + vec2(i, j) / resolution));
      vec2 low = vec2(i < 0 ? 1.0 - f.x : 1.0, j < 0 ? 1.0 - f.y : 1.0);
      vec2 high = vec2(i < 0 ? 1.0 : f.x, j < 0 ? 1.0 : f.y);
      sum += low.x * high.y * lit.x + high.x * high.y * lit.y + high.x * low.y * lit.z +
             low.x * low.y * lit.w;
    }
  }
  return sum / 9.0;
}

// The surroundings in one direction: a floor, a horizon, a bright ceiling.
vec3 surroundings(vec3 direction) {
  float up = direction.z;
  float level = up < 0.0 ? mix(0.75, 0.45, clamp(-up * 3.0, 0.0, 1.0))
                         : mix(0.75, 1.35, smoothstep(0.0, 0.8, up));
  return sceneBuffer.ambientLight.rgb * level;
}

// Linear up to the knee, so that the palette's colours come out as they are named; then a shoulder.
vec3 toneCurve(vec3 c) {
  const float knee = 0.7;
  vec3 over = max(c - knee, 0.0) / (1.0 - knee);
  return min(c, knee) + (1.0 - knee) * (1.0 - exp(-over));
}

void main() {
  vec3 eye = cameraBuffer.viewMatrixInverse[3].xyz;
  vec3 toEye = normalize(eye - world);
  vec3 normal = normalize(inNormal);

  int kind = int(materialBuffer.transmissionRoughness + 0.5);
  vec3 base = materialBuffer.baseColor.rgb * pattern(kind, local, size, abs(inNormal));
  float metallic = materialBuffer.metallic;
  float gloss = 1.0 - materialBuffer.roughness;
  float shininess = exp2(1.0 + 8.0 * gloss);
  vec3 diffuse = base * (1.0 - metallic);
  vec3 specular = mix(vec3(0.08 * materialBuffer.fresnel), base, metallic);

  // The key light: diffuse plus a normalised Blinn highlight, where its shadow does not fall.
  vec3 toKey = -sceneBuffer.directionalLights[0].direction.xyz;
  float facing = dot(normal, toKey);
  vec3 color = materialBuffer.emission.rgb;
  if (facing > 0.0) {
    float highlight = pow(max(dot(normal, normalize(toKey + toEye)), 0.0), shininess);
    vec3 reflected = diffuse + specular * highlight * (shininess + 8.0) / 25.0;
    float arriving = facing * keyVisibility(normal, toKey);
    color += sceneBuffer.directionalLights[0].emission.rgb * arriving * reflected;
  }
  for (int i = 1; i < NUM_DIRECTIONAL_LIGHTS; ++i) {
    float fill = max(-dot(normal, sceneBuffer.directionalLights[i].direction.xyz), 0.0);
    color += sceneBuffer.directionalLights[i].emission.rgb * fill * diffuse;
  }

  color += diffuse * surroundings(normal);
  float grazing = 1.0 - max(dot(normal, toEye), 0.0);
  grazing *= grazing * grazing * grazing;
  vec3 mirror = specular + (max(vec3(gloss), specular) - specular) * grazing * 0.4;
  // Metals show little else than the room: what it is lit by counts for them as well.
  float room = 1.0 + 1.2 * metallic;
  color += surroundings(reflect(-toEye, normal)) * mirror * room;

  outColor = vec4(pow(toneCurve(color), vec3(1.0 / 2.2)), 1.0);
}
