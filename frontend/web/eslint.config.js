/** What is checked beyond types: accessibility, hooks, no `any`, short components, and who may import whom. */
import js from '@eslint/js';
import jsxA11y from 'eslint-plugin-jsx-a11y';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import typescript from 'typescript-eslint';


/** Each folder may import itself and the folders below it; `fleet` and `jobs` stand side by side. */
const ABOVE = {
  ui: ['api', 'scope', 'series', 'fleet', 'quotas', 'jobs', 'app'],
  api: ['scope', 'series', 'fleet', 'quotas', 'jobs', 'app', 'ui'],
  scope: ['ui', 'api', 'series', 'fleet', 'quotas', 'jobs', 'app'],
  series: ['fleet', 'quotas', 'jobs', 'app'],
  views: ['series', 'fleet', 'quotas', 'jobs', 'app'],
  fleet: ['quotas', 'jobs', 'app'],
  quotas: ['jobs', 'app'],
  jobs: ['app'],
  reports: ['quotas', 'jobs', 'app'],
  submit: ['app', 'jobs', 'policies', 'admin'],
  policies: ['app', 'submit', 'admin'],
  admin: ['app', 'submit', 'policies'],
};

/** They would lose the scope. */
const PLAIN_LINKS = {
  name: 'react-router',
  importNames: ['Link', 'NavLink', 'useNavigate'],
  message: 'Use src/scope: it keeps the scope in the address.',
};

const floors = Object.entries(ABOVE).map(([floor, above]) => ({
  files: [`src/${floor}/**`],
  rules: {
    'no-restricted-imports': [
      'error',
      {
        patterns: above.map((name) => ({ group: [`**/${name}/**`], message: `src/${floor} must not know src/${name}.` })),
        paths: floor === 'scope' ? [] : [PLAIN_LINKS],
      },
    ],
  },
}));

export default typescript.config(
  { ignores: ['dist', 'node_modules', 'src/api/schema.d.ts'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [...typescript.configs.strictTypeChecked, jsxA11y.flatConfigs.strict, reactHooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      'max-lines': ['error', { max: 300, skipBlankLines: true }],
      'no-restricted-syntax': ['error', { selector: 'ExportDefaultDeclaration', message: 'Export by name.' }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  { files: ['src/**/*.tsx'], rules: { 'max-lines': ['error', { max: 150 }] } },
  {
    files: ['src/**/*.test.{ts,tsx}'],
    rules: { 'max-lines': ['error', { max: 400 }], '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  { files: ['*.config.ts', 'src/**/*Page.tsx'], rules: { 'no-restricted-syntax': 'off' } },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  ...floors,
);

