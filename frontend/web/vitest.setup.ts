/** What happy-dom lacks and Mantine asks for. */
window.matchMedia = (query: string) =>
  ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined }) as unknown as MediaQueryList;
