"""Adroit's pen as D4RL evaluates it: an episode also ends when the pen is dropped."""

# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false
import gymnasium

from edp.envs import physics, robotics

DROPPED = 0.075  # height of the pen below which the episode ends


def make(**options) -> gymnasium.Env:
    class Pen(robotics.import_robotics("adroit_hand").AdroitHandPenEnv):
        def step(self, action):
            obs, reward, terminal, timeout, info = super().step(action)
            return obs, reward, bool(terminal or self.data.xpos[self.obj_body_id][2] < DROPPED), timeout, info

    env = Pen(**options)
    physics.correct_contacts(env.model)
    return env
