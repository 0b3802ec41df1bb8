// Ctrl+Q (Cmd+Q) quits from anywhere, even where the page itself has failed.
addEventListener('keydown', (event) => {
  const quits = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === 'q';
  if (quits && !event.repeat) {
    event.preventDefault();
    window.__TAURI__.core.invoke('quit');
  }
}, true);
