"""Measure a token's importance: gradients, integrated gradients, leave-one-out, flow, rollout."""
