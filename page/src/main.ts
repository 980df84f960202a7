// The page: unpacks the document and shows it, or says why it cannot.

import { unpack } from "./document";
import { element } from "./element";
import { Page } from "./page";
import { follow } from "./theme";

async function start(): Promise<void> {
  const root = document.getElementById("page");
  const packed = document.getElementById("document");
  if (!root || !packed) return;
  follow();
  try {
    const page = new Page(await unpack(packed.textContent));
    packed.remove();
    root.replaceWith(page.root);
    page.start();
  } catch (error) {
    root.append(element("p", "failure", `This report cannot be shown: ${String(error)}`));
  }
  document.documentElement.dataset.ready = "yes";
}

void start();
