"""A house with a heat pump, as a Gymnasium environment: the process whose logs the example trains on.

Importing this module registers ``Heating-v0``; in this folder, ``--env heating:Heating-v0`` finds it.

Every half hour an operator sets the temperature of the water that flows to the radiators and opens their valve.
Three bodies store heat: the radiators with their water, the room, and the walls. The sun and the weather change, and
the price of electricity depends on the hour. The hotter the water, the more electricity a unit of heat takes. The
reward is in euros: what the electricity cost and what the cold or the heat in the room is worth, both negative.
"""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEP_HOURS, DAYS = 0.5, 3
STEPS = round(24 * DAYS / STEP_HOURS)
PARTS = 10  # of a step, for Euler's method
ACTIONS = ("flow_temp_c", "valve_percent")
LOW, HIGH = (18.0, 0.0), (75.0, 100.0)
OBSERVATIONS = (
    *("room_temp_c", "outdoor_temp_c", "return_temp_c", "solar_w_m2"),
    *("hour_sin", "hour_cos", "price_eur_kwh"),
)
BOUNDS = (-40.0, 90.0), (-40.0, 40.0), (-40.0, 90.0), (0.0, 1000.0), (-1.0, 1.0), (-1.0, 1.0), (0.0, 2.0)

# Capacities in kWh/K, conductances in kW/K.
RADIATORS, ROOM, WALLS = 0.8, 3.0, 12.0
WATER = 0.7  # what the flow carries with the valve open
RADIATORS_ROOM, ROOM_WALLS, ROOM_OUTDOORS, WALLS_OUTDOORS = 0.28, 1.0, 0.07, 0.13
STRONGEST = 12.0  # kW of heat, at most
PEOPLE, WINDOWS = 0.4, 4.0  # kW of heat from people and devices; m² that the sun shines through
PUMP = 0.08  # kW of electricity with the valve open

COMFORT = 20.0, 23.0  # °C
DISCOMFORT = 0.4  # euros for an hour that is 1 K outside of it
CHEAP, USUAL, DEAR = 0.14, 0.29, 0.44  # euros per kWh
DEAR_HOURS, CHEAP_HOURS = (*range(6, 10), *range(17, 22)), (*range(0, 5), *range(12, 15))


def tariff(hour: float) -> float:
    """The price of a kWh at this hour of an average day."""
    return DEAR if int(hour) in DEAR_HOURS else CHEAP if int(hour) in CHEAP_HOURS else USUAL


def efficiency(flow: float, outdoors: float) -> float:
    """Heat per unit of electricity: a share of what Carnot allows, within what machines do."""
    return min(max(0.42 * (flow + 273.15) / max(flow - outdoors, 10.0), 1.0), 6.0)


class Heating(gymnasium.Env):
    metadata = {"render_modes": []}  # noqa: RUF012  (gymnasium's)

    def __init__(self):
        low, high = np.array(BOUNDS, np.float32).T
        self.observation_space = spaces.Box(low, high)
        self.action_space = spaces.Box(np.array(LOW, np.float32), np.array(HIGH, np.float32))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        draw = self.np_random
        self.hour = 0.0
        self.season, self.front = draw.normal(3.0, 3.5), draw.normal(0.0, 1.5)  # of the outdoor temperature
        self.clouds = draw.uniform(0.0, 1.0)
        self.level = draw.uniform(0.8, 1.2)  # of prices
        self.room = draw.uniform(19.5, 22.5)
        self.radiators, self.walls = self.room + draw.uniform(0.0, 8.0), self.room - draw.uniform(0.5, 2.0)
        self.weather()
        return self.observe(), {}

    def weather(self) -> None:
        """Its next half hour: a season, the time of the day, and fronts and clouds that pass."""
        draw = self.np_random
        self.front += -0.03 * self.front + draw.normal(0.0, 0.35)
        self.clouds = min(max(self.clouds + draw.normal(0.0, 0.06), 0.0), 1.0)
        daily = 3.0 * math.cos(2 * math.pi * (self.hour - 15) / 24)
        self.outdoors = min(max(self.season + self.front + daily, -30.0), 30.0)
        height = max(math.sin(math.pi * (self.hour - 8) / 9), 0.0) if 8 <= self.hour <= 17 else 0.0
        self.sun = 550.0 * height * (1 - 0.85 * self.clouds)

    @property
    def price(self) -> float:
        return tariff(self.hour) * self.level

    def observe(self) -> np.ndarray:
        """Water returns as warm as the radiators are. The walls are not seen."""
        angle = 2 * math.pi * self.hour / 24
        seen = (self.room, self.outdoors, self.radiators, self.sun, math.sin(angle), math.cos(angle), self.price)
        return np.array(seen, np.float32)

    def step(self, action: np.ndarray):
        flow, valve = (float(number) for number in np.clip(action, LOW, HIGH))
        opening, part = valve / 100, STEP_HOURS / PARTS
        before, heat, lost, electricity = self.stored, 0.0, 0.0, PUMP * opening * STEP_HOURS
        gained = (PEOPLE + WINDOWS * self.sun / 1000) * STEP_HOURS
        for _ in range(PARTS):
            given = min(max(opening * WATER * (flow - self.radiators), 0.0), STRONGEST)
            if given:
                reached = self.radiators + given / (opening * WATER)  # less than was set, where the machine is too weak
                electricity += given * part / efficiency(reached, self.outdoors)
            radiated = RADIATORS_ROOM * (self.radiators - self.room)
            soaked = ROOM_WALLS * (self.room - self.walls)
            leaked, passed = ROOM_OUTDOORS * (self.room - self.outdoors), WALLS_OUTDOORS * (self.walls - self.outdoors)
            self.radiators += (given - radiated) * part / RADIATORS
            self.room += ((radiated - soaked - leaked) * part + gained / PARTS) / ROOM
            self.walls += (soaked - passed) * part / WALLS
            heat, lost = heat + given * part, lost + (leaked + passed) * part
        cost = electricity * self.price
        outside = max(COMFORT[0] - self.room, self.room - COMFORT[1], 0.0)
        discomfort = DISCOMFORT * outside * STEP_HOURS
        info = {
            **{"cost_eur": cost, "discomfort_eur": discomfort, "kelvin_hours_outside": outside * STEP_HOURS},
            **{"electricity_kwh": electricity, "heat_kwh": heat, "gained_kwh": gained, "lost_kwh": lost},
            "stored_kwh": self.stored - before,
        }
        self.hour = (self.hour + STEP_HOURS) % 24
        self.weather()
        return self.observe(), -cost - discomfort, False, False, info  # an episode has no end but the time limit

    @property
    def stored(self) -> float:
        """Heat above 0 °C, in kWh."""
        return RADIATORS * self.radiators + ROOM * self.room + WALLS * self.walls


gymnasium.register("Heating-v0", entry_point="heating:Heating", max_episode_steps=STEPS)
