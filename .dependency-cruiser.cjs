/** Imports go one way: api, cli → projections → journal (docs/architecture.md). */
module.exports = {
  forbidden: [
    {
      name: 'journal-imports-neither',
      severity: 'error',
      from: { path: '^src/journal' },
      to: { path: '^src/(projections|api|cli)' },
    },
    {
      name: 'projections-import-journal-only',
      severity: 'error',
      from: { path: '^src/projections' },
      to: { path: '^src/(api|cli)' },
    },
    {
      name: 'api-does-not-import-cli',
      severity: 'error',
      from: { path: '^src/api' },
      to: { path: '^src/cli' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-dead-files',
      severity: 'error',
      from: { orphan: true, path: '^src', pathNot: '\\.d\\.ts$' },
      to: {},
    },
    { name: 'no-test-code-in-src', severity: 'error', from: { path: '^src' }, to: { path: '^(test|bench)' } },
    {
      name: 'emmett-in-one-file',
      severity: 'error',
      from: { path: '^src', pathNot: '^src/journal/event\\.ts$' },
      to: { path: '@event-driven-io/emmett' },
    },
    {
      name: 'no-dev-packages-at-run-time',
      severity: 'error',
      from: { path: '^src' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: '^node_modules/(@types|tsx)',
      },
    },
    { name: 'not-resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
