"""Prints the results of a SARIF log: rule and fingerprint, a line for each place with its message, and with
--properties a line with the properties."""
import json
import sys

for result in json.load(open(sys.argv[1]))["runs"][0]["results"]:
    print(result["ruleId"], result["partialFingerprints"]["ptxkitFinding/v1"])
    for place in result["locations"] + result.get("relatedLocations", []):
        physical = place["physicalLocation"]
        said = place.get("message", {"text": "here"})["text"]
        print(f"  {physical['artifactLocation']['uri']}:{physical['region']['startLine']} {said}")
    if "--properties" in sys.argv:
        print(" ", json.dumps(result["properties"]))
