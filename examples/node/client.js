#!/usr/bin/env node
// Streams an answer: client.js HOST:PORT PROMPT. Ctrl-C cancels it; ../README.md says more.

const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const root = path.join(__dirname, '..', '..');
const definition = protoLoader.loadSync('proto/inference.proto', { includeDirs: [root], keepCase: true });
const { Inference } = grpc.loadPackageDefinition(definition).lockstep.v1;

const ATTEMPTS = 4;
const RETRYABLE = [grpc.status.UNAVAILABLE, grpc.status.RESOURCE_EXHAUSTED];

// TLS where $LOCKSTEP_CA names a file of certificates.
function connect(address) {
  const authority = process.env.LOCKSTEP_CA;
  return new Inference(
    address,
    authority ? grpc.credentials.createSsl(fs.readFileSync(authority)) : grpc.credentials.createInsecure(),
  );
}

// Prints an answer as it comes; an error that ends it too soon says whether it had begun.
function stream(call) {
  return new Promise((resolve, reject) => {
    let begun = false;
    process.once('SIGINT', () => call.cancel());
    call.on('data', ({ delta }) => {
      begun = true;
      process.stdout.write(delta?.text ?? '');
    });
    call.on('error', (error) => reject(Object.assign(error, { begun })));
    call.on('end', resolve);
  });
}

async function main(address, prompt) {
  const client = connect(address);
  const request = { text: prompt, sampling: { temperature: 0, max_tokens: 64 } };
  const metadata = new grpc.Metadata();
  if (process.env.LOCKSTEP_API_KEY) metadata.set('authorization', `Bearer ${process.env.LOCKSTEP_API_KEY}`);
  const deadline = Date.now() + 1000 * (process.env.LOCKSTEP_DEADLINE_S || 60);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await stream(client.Generate(request, metadata, { deadline }));
    } catch (error) {
      if (error.begun || attempt === ATTEMPTS || !RETRYABLE.includes(error.code)) throw error;
      await sleep(50 * 2 ** attempt);
    }
  }
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(`\n${error.message}`);
  process.exitCode = 1;
});
