#!/usr/bin/env bash
# Writes the plain manifests again, from the chart: deploy/kustomize/render.sh [FOLDER]
#
# One folder for each file of deploy/helm/lockstep/ci. helm is needed to make
# them, not to use them.
set -euo pipefail
cd "$(dirname "$0")"
into=${1:-.}
chart=../helm/lockstep
helm=${HELM:-helm}

for values in "$chart"/ci/*.yaml; do
  name=$(basename "$values" .yaml)
  mkdir -p "$into/$name"
  # Its comments say where in the chart an object comes from.
  "$helm" template lockstep "$chart" --namespace lockstep --values "$values" | sed '/^# Source: /d' > "$into/$name/manifests.yaml"
  cat > "$into/$name/kustomization.yaml" << END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: lockstep
resources: [manifests.yaml]
END
done
