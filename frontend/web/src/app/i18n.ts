/**
 * The languages of the console. English is in the shell, the others are fetched when chosen, and the deferred texts, of the tour,
 * charts, drains, second copies and questions about users, in any language, when the first of them is shown.
 */
import i18next, { type BackendModule, type ResourceLanguage } from 'i18next';
import { initReactI18next } from 'react-i18next';

import en from '../locales/en.json';

export const LANGUAGES = { en: 'English', 'zh-CN': '简体中文', id: 'Bahasa Indonesia' } as const;

export type Language = keyof typeof LANGUAGES;

const KEPT = 'convoy-language';

const others: Record<Exclude<Language, 'en'>, () => Promise<{ default: ResourceLanguage }>> = {
  'zh-CN': () => import('../locales/zh-CN.json'),
  id: () => import('../locales/id.json'),
};

const deferred: Record<Language, () => Promise<{ default: ResourceLanguage }>> = {
  en: () => import('../locales/deferred/en.json'),
  'zh-CN': () => import('../locales/deferred/zh-CN.json'),
  id: () => import('../locales/deferred/id.json'),
};

const backend: BackendModule = {
  type: 'backend',
  init: () => undefined,
  read: (language, _, done) => {
    deferred[language as Language]().then(({ default: texts }) => done(null, texts), (error: unknown) => done(String(error), false));
  },
};

export async function startLanguages(): Promise<void> {
  await i18next.use(initReactI18next).use(backend).init({
    resources: { en: { translation: en } },
    partialBundledLanguages: true,
    lng: 'en',
    fallbackLng: 'en',
    load: 'currentOnly',
    interpolation: { escapeValue: false },
  });
  await choose(kept() ?? preferred(navigator.languages));
}

export async function chooseLanguage(language: Language): Promise<void> {
  window.localStorage.setItem(KEPT, language);
  await choose(language);
}

/** The first of the reader's languages that the console speaks. */
export function preferred(wanted: readonly string[]): Language {
  const spoken = wanted.map((tag) => {
    const [base] = tag.toLowerCase().split('-');
    return base === 'zh' ? 'zh-CN' : base === 'id' || base === 'in' ? 'id' : base === 'en' ? 'en' : null;
  });
  return spoken.find((language) => language !== null) ?? 'en';
}

async function choose(language: Language): Promise<void> {
  if (language !== 'en' && !i18next.hasResourceBundle(language, 'translation')) {
    const texts = await others[language]();
    i18next.addResourceBundle(language, 'translation', texts.default);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}

function kept(): Language | null {
  const language = window.localStorage.getItem(KEPT);
  return language !== null && language in LANGUAGES ? (language as Language) : null;
}
