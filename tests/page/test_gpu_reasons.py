"""What the page makes of a browser's answers about WebGPU: each reason, and a "no" that is only a "not yet"."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def page(visit):
    with visit(gpu="software") as page:
        yield page


def ask(page, stub):
    """Run `requireAdapter` of gpu.js in the page, after `stub` has changed what the browser answers."""
    return page.page.run(f"""
        const {{ requireAdapter }} = await import(new URL('gpu.js', document.querySelector('script[src]').src));
        const gpu = navigator.gpu;
        const restore = [];
        const define = (target, name, value) => {{
            Object.defineProperty(target, name, {{ value, configurable: true }});
            restore.push(() => delete target[name]);
        }};
        try {{
            {stub}
            return await requireAdapter().then(
                (adapter) => ({{ adapter: adapter.info.architecture }}),
                ({{ name, message, remedy }}) => ({{ name, message, remedy }}),
            );
        }} finally {{
            restore.forEach((undo) => undo());
        }}
    """)


def test_a_gpu_process_that_is_still_starting_is_waited_for(page):
    stub = """
        let asked = 0;
        const real = gpu.requestAdapter.bind(gpu);
        define(gpu, 'requestAdapter', async (options) => (asked++ < 2 ? null : real(options)));
    """
    assert ask(page, stub) == {"adapter": "swiftshader"}


@pytest.mark.parametrize(
    ("stub", "reason", "remedy"),
    [
        ("define(gpu, 'requestAdapter', async () => null);", "no graphics adapter", "chrome://gpu"),
        ("define(navigator, 'gpu', undefined);", "does not offer WebGPU", "Chrome or Edge"),
        ("define(globalThis, 'isSecureContext', false);", "not a secure context", "https"),
    ],
)
def test_each_reason_has_its_remedy(page, stub, reason, remedy):
    error = ask(page, stub)
    assert error["name"] == "WebGpuUnavailable"
    assert reason in error["message"]
    assert remedy in error["remedy"]
