"""How known programs name their NVTX ranges, as data; each part can be replaced by an option."""

from __future__ import annotations

from pytest_perfgate.model.nsys import Preset

_STEP = r"^ProfilerStep"

PITHTRAIN = Preset(
    name="pithtrain",
    anchors=(r"^forward chunk.*backward chunk", _STEP),
    stage=r"stage([1-5])_([fbw])",
    purposes=(
        (r"stage[24]_", "ep_a2a"),
        (r"stage1_", "cp_ring"),
        (r"pipeline send/recv", "pp_p2p"),
    ),
)
MEGATRON = Preset(
    name="megatron",
    anchors=(r"^(iteration|train[_ -]?step)\b", r"^forward[-_]backward", _STEP),
    stage=r"(forward|backward)[-_](compute|step)|(embedding|layernorm|layer)[-_ ]?grads?[-_ ]all[-_]?reduce|optimizer",
    purposes=(
        (r"(forward|backward)[-_](send|recv)|p2p|send[-_]recv", "pp_p2p"),
        (r"all[-_]?to[-_]?all|alltoall|token[-_ ]?dispatch|token[-_ ]?combine", "ep_a2a"),
        (r"context[-_ ]parallel|ring[-_ ]?attention|attn[-_ ]fwd[-_ ]ring", "cp_ring"),
        (r"grads?[-_ ](all[-_]?reduce|reduce[-_]?scatter|sync)|param[-_ ]?gather", "dp_grad"),
        (r"tensor[-_ ]parallel|row[-_ ]?parallel|column[-_ ]?parallel", "tp"),
    ),
    rank=r"\b(?:global[-_ ])?rank\s*[=:]?\s*(\d+)",
)
DDP = Preset(
    name="ddp",
    anchors=(_STEP, r"^(train[_ -]?)?(step|iteration|iter|batch)\b"),
    stage=r"\b(forward|backward|optimizer|data)\b",
    purposes=(
        (r"DistributedDataParallel\.|all[-_]?reduce|bucket", "dp_grad"),
        (r"all[-_]?to[-_]?all", "a2a"),
        (r"backward", "dp_grad"),
    ),
)
PRESETS = {preset.name: preset for preset in (PITHTRAIN, MEGATRON, DDP)}
