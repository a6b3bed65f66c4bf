/** Mantine's mixins (light, dark, hover) for the CSS modules. */
import mantine from 'postcss-preset-mantine';

export default { plugins: [mantine()] };
