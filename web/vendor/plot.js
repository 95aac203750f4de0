/** The marks of Observable Plot that our charts use; the build bundles them with their dependencies. */
export { areaY, axisX, axisY, barX, binX, dot, gridX, gridY, line, plot, rectY, ruleX, ruleY, text, tickX } from '@observablehq/plot';
