"""Attention on a mesh of tiles: what sharing keys and values in a column saves."""

from pathlib import Path

from covering import exhaustive

import comet

TILES = Path("samples/hardware/tiles.yaml")
PROGRAM = """
func.func @main(%q: tensor<1x4x256x64xf16>, %k: tensor<1x4x256x64xf16>,
                %v: tensor<1x4x256x64xf16>) -> tensor<1x4x256x64xf16> {
  %o = compound.attention %q, %k, %v : (tensor<1x4x256x64xf16>,
    tensor<1x4x256x64xf16>, tensor<1x4x256x64xf16>) -> tensor<1x4x256x64xf16>
  func.return %o : tensor<1x4x256x64xf16>
}
"""


def small(folder: Path, multicast: bool) -> Path:
    """Return a mesh of 4 x 4 such tiles, which shares an eighth of the bandwidth."""
    text = TILES.read_text().replace("meshX: 32, meshY: 32", "meshX: 4, meshY: 4")
    text = text.replace("GB[0..1023]", "GB[0..15]").replace("bw: 2048", "bw: 32")
    if not multicast:
        text = text.replace("broadcast_support: true,\n", "broadcast_support: false,\n")
    path = folder / f"tiles_{multicast}.yaml"
    path.write_text(text)
    return path


@exhaustive
def test_a_group_of_tiles_that_share_keys_and_values_is_found(tmp_path: Path):
    alone, group = (
        comet.compile(
            PROGRAM,
            small(tmp_path, multicast),
            "comet-accelerator{strategy=full pad=none stream=true}",
        )
        for multicast in (False, True)
    )
    columns = "distribute{dim=H axes=cx},distribute{dim=M axes=cy}"
    assert columns in group.pipeline
    assert group.cost.latency < alone.cost.latency
    traffic = [each.cost.energy_by_level["DRAM"] for each in (alone, group)]
    assert traffic[0] > 2 * traffic[1]
