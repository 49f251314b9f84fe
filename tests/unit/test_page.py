"""The page in the browser: what it shows, what a browser does with it, and who is let in."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import tumble as tb
from tests.browser import Browser, find_chromium
from tests.children import answer_signals
from tumble.cli import main

viser = pytest.importorskip("viser", reason="the page needs viser: pip install 'tumble[view]'")
websocket = pytest.importorskip("websocket", reason="these tests need websocket-client: pip install 'tumble[test]'")
msgspec = pytest.importorskip("msgspec")

from tumble.view.coloring import COLORINGS  # noqa: E402
from tumble.view.page import LivePage, RunPage, instances  # noqa: E402
from tumble.view.page.gate import Gate  # noqa: E402
from tumble.view.page.instances import groups_of, placed  # noqa: E402
from tumble.view.snapshot import snapshot  # noqa: E402
from tumble.view.tessellate import triangles_of  # noqa: E402

SHAPES = (
    tb.Sphere(0.1),
    tb.Capsule(0.05, 0.2),
    tb.Box((0.2, 0.1, 0.15)),
    tb.Cylinder(0.1, 0.2),
    tb.Cone(0.1, 0.2),
    tb.Frustum(0.1, 0.05, 0.2),
    tb.Ellipsoid((0.1, 0.05, 0.07)),
    tb.Rounded(tb.Box((0.1, 0.1, 0.1)), 0.02),
    tb.ConvexHull([[x, y, z] for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.05, 0.1)]),
)


def build():
    scene = tb.SceneBuilder()
    scene.add_static(tb.HalfSpace(), name="floor")
    scene.add_static(tb.open_box(inner=(3, 3, 1)), name="box")
    for k, shape in enumerate(SHAPES):
        scene.add_body(shape, density=1000.0, position=(0.5 * (k % 3) - 0.5, 0.5 * (k // 3) - 0.5, 0.3), name=f"b{k}")
    big = scene.add_body(tb.Sphere(0.25), mass=5.0, position=(0, 0, 0.7), name="big")
    scene.add_joint("spherical", None, big, anchor=(0, 0, 1.2), name="hook")
    return scene.build()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.h5"
    sim = tb.Simulation(build(), options=tb.StepOptions(dt=2e-3), threads=1)
    fields = ("position", "orientation", "velocity", "angular_velocity", "contacts")
    sim.run(until=0.4, save=tb.Save(path=path, every=5, fields=fields))
    return path


@pytest.fixture
def page(run):
    with tb.Trajectory(run) as trajectory:
        page = RunPage(trajectory, port=0)
        yield page
        page.close()


def connected(page, **options):
    """A browser's connection, without the browser."""
    address = page.address.partition("/?")[0].replace("http", "ws")
    given = {"origin": address.replace("ws", "http"), "subprotocols": [f"viser-v{viser.__version__}"]} | options
    return websocket.create_connection(address, timeout=10, **given)


def camera():
    """A browser's first message: until then it is nobody."""
    look = {"wxyz": [1, 0, 0, 0], "position": [1, 0, 0], "look_at": [0, 0, 0], "up_direction": [0, 0, 1]}
    lens = {"fov": 1.0, "near": 0.1, "far": 100.0, "image_height": 100, "image_width": 100}
    return msgspec.msgpack.encode({"type": "ViewerCameraMessage", **look, **lens})


def status(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed: apt-get install chromium")
def test_a_browser_loads_the_page_plays_the_run_and_picks_a_body(page, tmp_path):
    browser = Browser(tmp_path)
    try:
        browser.open(page.address)
        browser.wait("document.querySelector('canvas') && document.body.innerText.includes('Contact forces')")
        values = "[...document.querySelectorAll('input,textarea')].map(e => e.value)"
        deadline = time.monotonic() + 30
        while not page.watched and time.monotonic() < deadline:
            time.sleep(0.05)
        begun = page.drawn
        browser.run("[...document.querySelectorAll('button')].find(b => b.innerText == 'Play').click()")
        browser.wait("document.body.innerText.includes('Pause')")
        shown, deadline = set(), time.monotonic() + 60
        while len(shown) < 4 and time.monotonic() < deadline:
            shown.add(tuple(browser.run(values)))
        assert len(shown) == 4 and page.drawn > begun + 3, "frames did not advance"
        page.play(False)
        page.go(0)
        time.sleep(1.0)
        ends = []  # the ball in the middle is what the camera looks at
        for x, y in ((400, 350), (420, 320), (400, 300), (440, 350), (500, 350), (500, 300)):
            browser.click(x, y)
            deadline = time.monotonic() + 5  # a browser without a graphics card may take its time
            while not ends and time.monotonic() < deadline:
                ends = [v for v in browser.run(values) if "mass" in v]
            if ends:
                break
        assert ends and re.match(r"(big|b\d)\nmass .* kg\nposition ", ends[0]), browser.run(values)
        assert browser.errors == []
    finally:
        browser.close()


def test_the_page_shows_the_frame_that_it_says(page, run):
    with tb.Trajectory(run) as trajectory:
        for frame in (0, 7, trajectory.frames - 1):
            page.go(frame)
            shot = snapshot(trajectory, frame)
            for group, handle in zip(page._stage._groups, page._stage._handles):
                if group.part == "bodies":
                    position, _ = placed(group, shot, page._stage.origin)
                    assert np.array_equal(handle.batched_positions, position)
            assert page._time.value == f"{trajectory.times[frame]:.4g}"
            ends = page._stage._joints.points + page._stage.origin
            assert ends[0] == pytest.approx(shot.joints[0], abs=1e-6)


def test_groups_are_the_shapes_themselves():
    """Every vertex of a copy lies on the surface that the picture of the body has."""
    model = build()
    sim = tb.Simulation(model, options=tb.StepOptions(dt=1e-3))
    shot, seen = snapshot(sim), 0
    for group in groups_of(shot):
        position, _ = placed(group, shot, np.zeros(3))
        for k, shape in enumerate(group.shape):
            points, _ = triangles_of(model, int(shape), segments=48)
            own = points + shot.position[group.body[k]]  # bodies stand upright here
            vertex = group.vertex * group.scale[k] + position[k]
            assert vertex.min(axis=0) == pytest.approx(own.min(axis=0), abs=0.012)
            assert vertex.max(axis=0) == pytest.approx(own.max(axis=0), abs=0.012)
            seen += 1
    assert seen == np.sum(model.shape_kind != 10)


def test_a_ray_picks_the_nearest_body_and_not_a_clipped_one(page):
    page.go(0)
    stage, origin = page._stage, page._stage.origin
    down = np.array([0.0, 0.0, -1.0])
    body = stage.pick(page._shot, np.array([0, 0, 5.0]) - origin, down)
    assert page._shot.model.name(body) == "big"
    assert stage.pick(page._shot, np.array([9.0, 0, 5.0]) - origin, down) is None
    stage.wanted.clip, stage.wanted.cut = "z", 0.5
    clipped = stage.clipped(page._shot)
    assert clipped[body] == (page._shot.position[body, 2] > origin[2]) and not clipped.all()
    assert stage.pick(page._shot, np.array([0, 0, 5.0]) - origin, down) != body or not clipped[body]


def test_forces_colours_and_walls_follow_the_controls(page, run):
    with tb.Trajectory(run) as trajectory:
        page.go(trajectory.frames - 1)
        stage = page._stage
        stage.wanted.forces = True
        page._refresh()
        c = trajectory.contacts(-1)
        size = np.linalg.norm(c["force"], axis=1)
        arrows = stage._arrows.points
        assert stage._arrows.visible and len(arrows) == np.sum(size > 0)
        length = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1)
        assert length / length.max() == pytest.approx(np.sort(size)[::-1][: len(length)] / size.max(), abs=1e-4)
        before = [np.array(h.batched_colors) for h in stage._handles]
        stage.wanted.color = "speed"
        page._refresh()
        assert any(not np.array_equal(a, h.batched_colors) for a, h in zip(before, stage._handles))
        stage.wanted.walls = "off"
        page._refresh()
        shown = {group.part: handle.visible for group, handle in zip(stage._groups, stage._handles)}
        assert shown == {"bodies": True, "walls": False}


def test_a_run_that_is_over_in_a_moment_is_played_all_the_same(page):
    """Shorter than a picture: first and last frame are seen in turn; without a loop it ends with the last."""
    page._speed.value = 100.0
    seen = set()
    page.play(True)
    assert waited(lambda: seen.add(page._shot.frame) or {0, page._run.frames - 1} <= seen)
    page._loop.value = False
    assert waited(lambda: not page._playing.is_set()) and page._shot.frame == page._run.frames - 1


def test_only_this_machine_by_its_own_name_is_let_in(page):
    assert page.token is None and page.address.startswith("http://127.0.0.1:")
    assert status(page.address) == 200
    assert status(page.address, Host="evil.example") == 403
    assert status(page.address, Origin="http://evil.example") == 403
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        connected(page, origin="http://evil.example")
    for path in ("/../../pyproject.toml", "/%2e%2e/%2e%2e/_viser.py", "//etc/passwd"):
        assert status(page.address + path) in (403, 404)
    connected(page).close()


def test_a_taken_port_gives_the_next_and_no_port_is_one_line(run, capsys):
    with socket.socket() as taken, socket.socket() as last, tb.Trajectory(run) as trajectory:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        page = RunPage(trajectory, port=port)
        try:
            assert port < int(page.address.rpartition(":")[2]) < port + 100 and status(page.address) == 200
        finally:
            page.close()
        with contextlib.suppress(OSError):  # taken by others is taken, too
            last.bind(("127.0.0.1", 65535))
            last.listen()
        assert main(["view", str(run), "--port", "65535"]) == 2
        said = capsys.readouterr()
        assert "Give another --port" in said.err and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "", "1.2.3.4.5", "a" * 70])
def test_an_address_that_is_not_of_this_machine_is_one_line(run, capsys, host):
    assert main(["view", str(run), "--host", host, "--port", "0"]) == 2
    said = capsys.readouterr()
    assert "must be an address of this machine" in said.err and said.err.count("\n") == 1 and not said.out


def test_a_frame_that_is_not_there_is_one_line(run, capsys):
    assert main(["view", str(run), "--frame", "999", "--port", "0"]) == 2
    said = capsys.readouterr()
    assert "The nearest is" in said.err and said.err.count("\n") == 1 and not said.out


def test_garbage_from_outside_leaves_the_page_alone(page):
    """Whatever bytes come in, the page goes on for others, and nothing but its controls has changed."""
    sliders = {handle.label: handle._impl.uuid for handle in page._server.gui._gui_input_handle_from_uuid.values()}
    pack = msgspec.msgpack.encode
    sent = [b"", b"\xc1", b"{}", b"\x91" * 5000, pack(3), pack({"type": 3}), pack({"type": "Nope"})]
    for value in ("x", None, float("nan"), float("inf"), -1, 10**18, [1], {"a": 1}, b"x", "../../x", 1e308):
        sent += [pack({"type": "GuiUpdateMessage", "uuid": u, "updates": {"value": value}}) for u in sliders.values()]
        where = {"instance_index": value, "ray_origin": value, "ray_direction": value, "screen_pos": value}
        sent.append(pack({"type": "SceneNodeClickMessage", "name": value, "modifier": value, **where}))
        sent.append(pack({"type": "ScenePointerMessage", "event_type": "click", "modifier": value, **where}))
    for words in sent:  # what is no message ends its connection
        line = browsing(page)
        line.send_binary(words)
        line.close()
    line = browsing(page)
    for value in (True, False):  # one of them is new: who left at once may have set the other without any effect
        line.send_binary(pack({"type": "GuiUpdateMessage", "uuid": sliders["Ground"], "updates": {"value": value}}))
    assert waited(lambda: not page._stage.wanted.ground)  # the last one arrived
    line.close()
    page.play(True)
    before = page.drawn
    assert waited(lambda: page.drawn > before) and page._thread.is_alive()
    assert status(page.address) == 200
    wanted = page._stage.wanted
    assert wanted.color in COLORINGS and wanted.walls in ("glass", "solid", "off") and wanted.clip in ("off", *"xyz")


def browsing(page):
    """A connection that the page takes for a browser's; what comes from others has no effect. On a machine that is busy
    a browser tries again, too."""
    for _ in range(5):
        before = set(page._server.get_clients())
        line = connected(page)
        line.send_binary(camera())
        if waited(lambda before=before: set(page._server.get_clients()) - before, 15.0):
            return line
        line.close()
    raise AssertionError("the page takes nobody in")


def waited(done, seconds=60.0):
    """Whether it comes true in time."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)
    return done()


def test_other_machines_need_the_token(run):
    with tb.Trajectory(run) as trajectory:
        page = RunPage(trajectory, host="0.0.0.0", port=0)
        try:
            bare, _, token = page.address.replace("0.0.0.0", "127.0.0.1").partition("/?token=")
            assert len(token) >= 20
            assert status(bare) == 403 and status(bare + "/?token=" + token[:-1]) == 403
            with urllib.request.urlopen(f"{bare}/?token={token}") as answer:
                cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
            place = bare.replace("http", "ws")
            given = {"origin": bare, "subprotocols": [f"viser-v{viser.__version__}"], "timeout": 10}
            with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
                websocket.create_connection(place, **given)
            websocket.create_connection(place, cookie=cookie.partition(";")[0], **given).close()
        finally:
            page.close()


def test_the_gate_takes_no_empty_and_no_broken_token():
    gate = Gate("secret")
    for path, cookie in (("/", ""), ("/?token=", ""), ("/?token=%ff", ""), ("/", "tumble_token="), ("/", "\x00;=;")):
        assert gate.refuses(path, {"Host": "a:1", "Cookie": cookie})
    assert not gate.refuses("/?token=secret", {"Host": "a:1"})
    assert gate.refuses("/?token=secret", {"Host": "a:1", "Origin": "http://b:1"})


def test_what_comes_in_opens_no_tunnel_uploads_nothing_and_changes_only_values(page, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(type(page._server), "request_share_url", lambda *_, **__: asked.append("tunnel"))
    monkeypatch.chdir(tmp_path)
    line = connected(page)
    slider = page._slider
    uuid = slider._impl.uuid
    part = {"source_component_uuid": uuid, "transfer_uuid": "t"}
    for sent in (
        {"type": "ShareUrlRequest"},
        {
            "type": "FileTransferStartUpload",
            **part,
            "filename": "../x",
            "mime_type": "a",
            "part_count": 1,
            "size_bytes": 1,
        },
        {"type": "FileTransferPart", **part, "part_index": 0, "content": b"x"},
        {"type": "RunJavascriptMessage", "source": "alert(1)"},
        {"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"update_cb": ["x"]}},
        {"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": 3}},
    ):
        line.send_binary(msgspec.msgpack.encode(sent))
    deadline = time.monotonic() + 10
    while slider.value != 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert slider.value == 3  # the last one arrived, and those before it were seen and dropped
    assert asked == [] and os.listdir(tmp_path) == []
    assert page._server.gui._current_file_upload_states == {}
    assert callable(slider._impl.update_cb[0])
    line.close()


def test_a_live_page_shows_the_simulation_and_leaves_its_bits_alone():
    def simulation():
        return tb.Simulation(build(), options=tb.StepOptions(dt=2e-3), threads=1)

    alone, seen = simulation(), simulation()
    alone.run(until=0.2)
    page = LivePage(seen, port=0)
    try:
        line = connected(page)
        line.send_binary(camera())
        deadline = time.monotonic() + 10
        while not page.watched and time.monotonic() < deadline:
            time.sleep(0.02)
        page._stage.wanted.forces = True
        before = page.drawn
        seen.run(until=0.2, stop=lambda sim: page.watch(sim) or bool(time.sleep(0.002)))
        time.sleep(0.2)
        assert page.drawn > before
        assert seen.state.sha256() == alone.state.sha256()
        line.close()
    finally:
        page.close()


def test_the_command_says_where_and_ends_with_an_interrupt(run, capsys):
    command = [sys.executable, "-m", "tumble", "view", str(run), "--port", "0"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=answer_signals
    )
    said = child.stdout.readline()
    assert re.match(r"open http://127\.0\.0\.1:\d+$", said)
    assert status(said.split()[1]) == 200
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130 and errors.count("\n") == 1, errors
    assert main(["view", "nothing.h5"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_run_is_watched_and_then_played_at_the_same_address(tmp_path):
    (tmp_path / "scene.toml").write_text(
        "[[body]]\nkind = 'static'\nshape = {type = 'half_space'}\n"
        "[[body]]\nshape = {type = 'sphere', radius = 0.1}\nmass = 1\nposition = [0, 0, 0.5]\n"
        "[step]\ndt = 2e-3\n[run]\nuntil = 0.1\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tumble", "run", "scene.toml", "--view", "--port", str(port), "--quiet"]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=answer_signals,
    )
    assert child.stdout.readline() == child.stdout.readline() == f"open http://127.0.0.1:{port}\n"
    assert status(f"http://127.0.0.1:{port}") == 200
    os.kill(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 130 and errors.splitlines()[-1] == "tumble: interrupted, the page is closed", errors
    with tb.Trajectory(tmp_path / "scene.h5") as trajectory:
        assert trajectory.finished and trajectory.times[-1] == pytest.approx(0.1)


def test_points_that_are_not_there_are_not_shown(monkeypatch):
    """Spheres beyond a number are points; those that are absent or cut away lie where another one is."""
    monkeypatch.setattr(instances, "POINTS_FROM", 3)
    scene = tb.SceneBuilder()
    scene.add_spheres(0.1, mass=1.0, position=[(0, 0, k) for k in range(6)], name="balls")
    scene.add_emitter(
        tb.Sphere(0.1), mass=1.0, count=3, rate=1.0, start=9.0, region=tb.BoxRegion(low=(2, 2, 2), high=(3, 3, 3))
    )
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    page = LivePage(sim, port=0)
    try:
        (handle,), shot = page._stage._handles, snapshot(sim)
        for _ in range(2):
            page.show(shot)
            assert handle.points[:6] == pytest.approx(shot.position[:6] - page._stage.origin)
            assert np.array_equal(handle.points[6:], np.tile(handle.points[0], (3, 1)))
        page._stage.wanted.clip, page._stage.wanted.cut = "z", 0.5
        page.show(shot)
        assert len(np.unique(handle.points, axis=0)) == 3 and np.isfinite(handle.points).all()
        assert handle.points[:, 2].max() <= 0.0
        page._stage.wanted.cut = 0.0
        page.show(shot)
        assert not handle.visible
    finally:
        page.close()


def test_twenty_thousand_bodies_leave_time_for_twenty_pictures_a_second():
    """What drawing one of them takes of a processor, without what sends it: 3 ms where this was written."""
    scene = tb.SceneBuilder()
    scene.add_spheres(0.01, mass=1.0, position=tb.grid_points((28, 28, 26), 0.025)[:20000], name="balls")
    sim = tb.Simulation(scene.build(), options=tb.StepOptions(dt=1e-3))
    page = LivePage(sim, port=0)
    try:
        shots = [snapshot(sim) for _ in range(20)]
        for k, shot in enumerate(shots):
            shot.position[:] += 1e-3 * k
        began = time.process_time()
        for shot in shots:
            page.show(shot)
        assert time.process_time() - began < 20 / 20.0
    finally:
        page.close()
