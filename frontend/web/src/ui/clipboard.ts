/** Puts a text into the clipboard, also where the browser offers no clipboard because the page came by plain HTTP. */

export async function intoClipboard(text: string): Promise<boolean> {
  // Not there at all without a secure context, whatever the types say.
  const clipboard = (navigator as Partial<Navigator>).clipboard;
  if (clipboard) {
    const done = await clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    if (done) return true;
  }
  return bySelection(text);
}

/** Inside an open dialog or menu, which would take the focus back from anywhere else. */
function bySelection(text: string): boolean {
  const before = document.activeElement;
  const host = before?.closest('[role="dialog"], [role="menu"]') ?? document.body;
  const field = document.createElement('textarea');
  field.value = text;
  field.readOnly = true;
  field.className = 'cv-hidden';
  host.append(field);
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the one way without a secure context
  const done = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
