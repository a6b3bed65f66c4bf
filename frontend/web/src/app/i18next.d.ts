import type deferred from '../locales/deferred/en.json';
import type en from '../locales/en.json';

declare module 'i18next' {
  interface CustomTypeOptions {
    resources: { translation: typeof en; deferred: typeof deferred };
  }
}
