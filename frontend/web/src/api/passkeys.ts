/** Passkeys (WebAuthn): what the server asks of the browser, and the browser's answer as the server takes it. */
import { api } from './client.ts';
import { Problem } from './problem.ts';
import type { FactorCodes } from './types.ts';

interface Descriptor {
  id: string;
  type: 'public-key';
}

/** PublicKeyCredentialRequestOptions as JSON: what is binary is text in base64url. */
export interface AskedSignature {
  challenge: string;
  rpId: string;
  allowCredentials: Descriptor[];
}

interface AskedKey {
  challenge: string;
  rp: PublicKeyCredentialRpEntity;
  user: { id: string; name: string; displayName: string };
  pubKeyCredParams: PublicKeyCredentialParameters[];
  excludeCredentials?: Descriptor[];
}

interface Asked {
  new: AskedKey;
  known: AskedSignature | null;
}

export interface Signed {
  id: string;
  client_data: string;
  authenticator_data: string;
  signature: string;
}

/** A second factor as it is sent: a code, or what a passkey has signed. */
export interface Proof {
  code?: string;
  passkey?: Signed;
}

const factor = 'second-factor/';

/** Signs with a passkey of the user; the browser asks for it. */
export async function sign(asked: AskedSignature): Promise<Signed> {
  const credential = await answerOf(
    navigator.credentials.get({
      publicKey: {
        challenge: bytes(asked.challenge),
        rpId: asked.rpId,
        allowCredentials: asked.allowCredentials.map(descriptor),
      },
    }),
  );
  const { clientDataJSON, authenticatorData, signature } = credential.response as AuthenticatorAssertionResponse;
  return {
    id: text(credential.rawId),
    client_data: text(clientDataJSON),
    authenticator_data: text(authenticatorData),
    signature: text(signature),
  };
}

/** Makes a passkey and adds it; a user who has one at this address signs with it first. */
export async function addPasskey(name: string, code: string): Promise<FactorCodes> {
  const asked = await ask();
  const proof = await proven(asked, code);
  const { challenge, user, excludeCredentials, ...rest } = asked.new;
  const credential = await answerOf(
    navigator.credentials.create({
      publicKey: {
        ...rest,
        challenge: bytes(challenge),
        user: { ...user, id: bytes(user.id) },
        excludeCredentials: (excludeCredentials ?? []).map(descriptor),
      },
    }),
  );
  const { clientDataJSON, attestationObject } = credential.response as AuthenticatorAttestationResponse;
  return api.post<FactorCodes>(`${factor}passkeys/`, {
    ...proof,
    name,
    id: text(credential.rawId),
    client_data: text(clientDataJSON),
    attestation: text(attestationObject),
  });
}

export async function removePasskey(id: number, code: string): Promise<unknown> {
  return api.post(`${factor}passkeys/${id}/remove/`, await proven(await ask(), code));
}

/** Sets an authenticator app up; a user who has passkeys signs with one first. */
export async function confirmApp(code: string, hasPasskeys: boolean): Promise<FactorCodes> {
  const { passkey } = hasPasskeys ? await proven(await ask(), '') : {};
  return api.put<FactorCodes>(factor, passkey ? { code, passkey } : { code });
}

function ask(): Promise<Asked> {
  return api.post<Asked>(`${factor}passkeys/options/`);
}

async function proven({ known: asked }: Asked, code: string): Promise<Proof> {
  if (code) return { code };
  return asked ? { passkey: await sign(asked) } : {};
}

async function answerOf(asking: Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    return (await asking) as PublicKeyCredential;
  } catch (error) {
    throw new Problem(0, 'Passkey', error instanceof Error ? error.message : String(error));
  }
}

function descriptor({ id, type }: Descriptor): PublicKeyCredentialDescriptor {
  return { id: bytes(id), type };
}

function bytes(base64url: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function text(binary: ArrayBuffer): string {
  const characters = Array.from(new Uint8Array(binary), (byte) => String.fromCharCode(byte)).join('');
  return btoa(characters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
