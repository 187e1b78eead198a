// The terms of a show, changed as its organiser does.
import { randomUUID } from "node:crypto";

import { type APIRequestContext, expect } from "@playwright/test";

import { signInByApi } from "./accounts.js";

interface OrganisedShow {
  terms: Record<string, unknown>;
  version: number;
}

/** Changes some terms of a show and keeps the others. Signs `request` in as a manager. */
export async function changeTerms(request: APIRequestContext, show: string, changes: Record<string, unknown>): Promise<void> {
  // Every project uses this manager: there is none for the phone.
  await signInByApi(request, "manager-laptop@example.org");
  const found = (await (await request.get(`/api/v1/shows/${show}`)).json()) as { theatre: string };
  const path = `/api/v1/theatres/${found.theatre}/programme/${show}`;
  const { terms, version } = (await (await request.get(path)).json()) as OrganisedShow;
  const data = { terms: { ...terms, ...changes }, version, reason: "On sale today." };
  const changed = await request.post(`${path}/terms`, { data, headers: { "idempotency-key": randomUUID() } });
  expect(changed.status(), await changed.text()).toBe(200);
}
