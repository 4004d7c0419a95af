"""How the data beside this file was made from CityBench's bundle of Aarhus open data: one Tuesday, 2 September 2014.

    python examples/aarhus/extract.py BUNDLE

BUNDLE is a folder with CityBench's `streams/` and `dataset/` (github.com/CityBench/Benchmark). Readings are the city's
own (Open Data Aarhus). Writes city.ttl (roads, garages), traffic.stream and parking.stream beside this file.
"""

from __future__ import annotations

import csv
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
DAY = "2014-09-02"
ROADS = ("158505", "182955", "186979", "192707")
GARAGES = ("BRUUNS", "BUSGADEHUSET", "KALKVAERKSVEJ", "MAGASIN", "NORREPORT", "SALLING", "SCANDCENTER", "SKOLEBAKKEN")
BASE = "http://penstock.example/aarhus/"
NEAR_METRES = 700

HEADER = f"""\
# Roads and garages of Aarhus, from CityBench's metadata (Open Data Aarhus, 2014). Made by extract.py.
@prefix a: <{BASE}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .

"""


def milliseconds(text: str) -> int:
    """Milliseconds since the epoch of a reading's time, taken as UTC."""
    return int(datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).timestamp()) * 1000


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file as dicts."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def metres(one: tuple[float, float], two: tuple[float, float]) -> float:
    """Distance of two nearby points (latitude, longitude)."""
    north = (one[0] - two[0]) * 111_320
    east = (one[1] - two[1]) * 111_320 * math.cos(math.radians(one[0]))
    return math.hypot(north, east)


def triple(subject: str, predicate: str, value: str) -> str:
    """One N-Triples statement."""
    return f"{subject} <{BASE}{predicate}> {value} ."


def integer(value: str) -> str:
    """An xsd:integer."""
    return f'"{int(value)}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def traffic(bundle: Path) -> list[tuple[int, list[str]]]:
    """(time, triples) of each reading of a road."""
    events = []
    for road in ROADS:
        for row in rows(bundle / f"streams/AarhusTrafficData{road}.stream"):
            if row["TIMESTAMP"].startswith(DAY):
                reading = [
                    triple("_:r", "road", f"<{BASE}road/{road}>"),
                    triple("_:r", "speed", integer(row["avgSpeed"])),
                    triple("_:r", "vehicles", integer(row["vehicleCount"])),
                ]
                events.append((milliseconds(row["TIMESTAMP"]), reading))
    return sorted(events, key=lambda event: event[0])


def parking(bundle: Path) -> list[tuple[int, list[str]]]:
    """(time, triples) of each reading of a garage."""
    events = []
    for garage in GARAGES:
        for row in rows(bundle / f"streams/AarhusParkingData{garage}.stream"):
            if row["updatetime"].startswith(DAY):
                free = max(0, int(row["totalspaces"]) - int(row["vehiclecount"]))
                reading = [
                    triple("_:r", "garage", f"<{BASE}garage/{garage}>"),
                    triple("_:r", "free", integer(str(free))),
                ]
                events.append((milliseconds(row["updatetime"].replace(" ", "T")), reading))
    return sorted(events, key=lambda event: event[0])


def city(bundle: Path) -> str:
    """Roads and garages as Turtle."""
    out = [HEADER]
    for row in rows(bundle / "dataset/MetaData/trafficMetaData.csv"):
        if row["REPORT_ID"] in ROADS:
            name = f"{row['POINT_1_STREET'].strip()} to {row['POINT_2_STREET'].strip()}"
            out.append(
                f'<{BASE}road/{row["REPORT_ID"]}> a a:Road ; rdfs:label "{name}" ;\n'
                f"    a:usualSpeed {row['NDT_IN_KMH']} ; a:metres {row['DISTANCE_IN_METERS']} .\n"
            )
    places = {}
    capacity = {}
    for garage in GARAGES:
        capacity[garage] = int(rows(bundle / f"streams/AarhusParkingData{garage}.stream")[0]["totalspaces"])
    for row in rows(bundle / "dataset/MetaData/aarhus_parking_address.csv"):
        if row["garagecode"] in GARAGES:
            places[row["garagecode"]] = (row["street"], float(row["latitude"]), float(row["longitude"]))
    for garage, (street, *point) in sorted(places.items()):
        near = [
            f"<{BASE}garage/{other}>"
            for other, (_, *there) in sorted(places.items())
            if other != garage and metres((point[0], point[1]), (there[0], there[1])) < NEAR_METRES
        ]
        also = f" ;\n    a:near {', '.join(near)}" if near else ""
        out.append(
            f'<{BASE}garage/{garage}> a a:Garage ; rdfs:label "{garage.capitalize()}, {street}" ;\n'
            f"    a:spaces {capacity[garage]}{also} .\n"
        )
    return "".join(out)


def write(name: str, events: list[tuple[int, list[str]]]) -> None:
    """A stream file: a timestamp and a triple a line; lines of one event share their timestamp."""
    with (HERE / name).open("w", encoding="utf-8") as file:
        for number, (time, reading) in enumerate(events):
            file.writelines(f"{time} {line.replace('_:r', f'_:r{number}')}\n" for line in reading)


if __name__ == "__main__":
    source = Path(sys.argv[1])
    write("traffic.stream", traffic(source))
    write("parking.stream", parking(source))
    (HERE / "city.ttl").write_text(city(source), encoding="utf-8")
