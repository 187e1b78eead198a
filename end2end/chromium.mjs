// How tests and benchmarks start Chromium. `cargo xtask` sets CHROMIUM to its program.

const asRoot = process.getuid?.() === 0;

export const LAUNCH_OPTIONS = {
  executablePath: process.env.CHROMIUM,
  args: [
    "--disable-gpu",
    // Without this, the headless shell aligns letters to whole pixels, which the browser with windows does not.
    "--font-render-hinting=none",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // Chromium's sandbox does not run as root.
    ...(asRoot ? ["--no-sandbox"] : []),
  ],
};
