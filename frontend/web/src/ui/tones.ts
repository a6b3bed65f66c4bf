/** The meanings a colour may carry. */
export type Tone = 'neutral' | 'info' | 'good' | 'warn' | 'bad' | 'move';
