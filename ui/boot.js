// Starts the window: names the platform for the type stack, then loads the module.
import init from './ui.js';

const agent = navigator.userAgent;
const platform = agent.includes('Mac OS') ? 'mac' : agent.includes('Windows') ? 'windows' : 'linux';
document.documentElement.classList.add(platform);

await init({ module_or_path: './ui_bg.wasm' });
